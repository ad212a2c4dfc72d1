/* Credentials of a command line: each form is hidden in place and moved into the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workload/secret.h"

static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
					"AWS_SESSION_TOKEN"};

/* What is left of a word, which is compared up to its first NUL, and the variables. */
static void hidden(const char *word, const char *left, const char *access, const char *secret,
		   const char *token)
{
	const char *want[] = {access, secret, token};
	char text[512], program[] = "stoker", *argv[] = {program, text, NULL};
	size_t n = strlen(word);

	memset(text, 'x', sizeof(text));
	memcpy(text, word, n + 1);
	for (size_t i = 0; i < 3; i++)
		unsetenv(variables[i]);
	secret_hide_words(2, argv);
	assert_string_equal(text, left);
	for (size_t i = 0; i < 3; i++) {
		const char *is = getenv(variables[i]);

		assert_string_equal(is ? is : "none", want[i] ? want[i] : "none");
		/* whatever is behind the first NUL, too */
		for (size_t at = 0; want[i] && at + strlen(want[i]) <= n; at++)
			assert_memory_not_equal(text + at, want[i], strlen(want[i]));
	}
	assert_int_equal(text[n + 1], 'x');
}

static void keys(void **state)
{
	(void)state;
	hidden("storage.storage_options.access_key_id=AKIAEXAMPLE",
	       "storage.storage_options.access_key_id=hidden", "AKIAEXAMPLE", NULL, NULL);
	hidden("++workload.storage.storage_options.secret_access_key='a b/c+='",
	       "++workload.storage.storage_options.secret_access_key=hidden", NULL,
	       "a b/c+=", NULL);
	hidden("+aws_session_token=t#k", "+aws_session_token=hid", NULL, NULL, "t#k");
	hidden("storage.storage_options.access_key_id=${oc.env:KEY}",
	       "storage.storage_options.access_key_id=${oc.env:KEY}", NULL, NULL, NULL);
	hidden("storage.s3.access_key=AKIA", "storage.s3.access_key=AKIA", NULL, NULL, NULL);
}

static void maps(void **state)
{
	(void)state;
	hidden("storage.storage_options={endpoint_url: http://h:80, access_key_id: AKIA1234, "
	       "secret_access_key: \"s3cr:et,}\\\"/+=\", region: r}",
	       "storage.storage_options={endpoint_url: http://h:80, access_key_id: hidden  , "
	       "secret_access_key: hidden          , region: r}",
	       "AKIA1234", "s3cr:et,}\\\"/+=", NULL);
	hidden("storage={storage_options: {session_token:tokentoken}, storage_type: s3}",
	       "storage={storage_options: {session_token:hidden    }, storage_type: s3}", NULL,
	       NULL, "tokentoken");
	hidden("storage={'secret_access_key': 'abcdefgh'}",
	       "storage={'secret_access_key': hidden    }", NULL, "abcdefgh", NULL);
	hidden("a={secret_access_key: 'open", "a={secret_access_key: hidde", NULL, "'open", NULL);
	hidden("a={secret_access_key:}", "a={secret_access_key:}", NULL, NULL, NULL);
	hidden("a={not_a_secret_access_key: text}", "a={not_a_secret_access_key: text}", NULL, NULL,
	       NULL);
	hidden("a={", "a={", NULL, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
