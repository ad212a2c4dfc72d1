/* XML of servers: elements and texts, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/xml.h"

/* "a[b[text]]": as it is told. NULL when it is refused. */
static char *told(const char *text)
{
	struct buf out = {0};
	struct err e;
	struct xml x;
	int event;

	xml_begin(&x, text, strlen(text));
	while ((event = xml_next(&x, &e)) > XML_END) {
		if (event == XML_OPEN)
			buf_printf(&out, "%s[", x.name[x.depth - 1]);
		else
			buf_printf(&out, "%s]", xml_text(&x));
	}
	xml_end(&x);
	if (event == XML_END)
		return buf_take(&out);
	buf_release(&out);
	return NULL;
}

static void documents(void **state)
{
	static const char *const good[][2] = {
		{"<?xml version=\"1.0\"?>\n<a xmlns=\"x>y\"><b>1 &lt; 2 &amp;&#65;&#x42;</b></a>\n",
		 "a[b[1 < 2 &AB]]"},
		{"<a/>", "a[]"},
		{"\xef\xbb\xbf<n:a><n:b x='/'/><c></c></n:a>", "a[b[]c[]]"},
		{"<a><!-- < & -->x<![CDATA[<&]]>y</a>", "a[x<&y]"},
		{"<a>&#x20ac;&quot;&apos;&gt;</a >", "a[\xe2\x82\xac\"'>]"},
	};
	static const char *const bad[] = {
		"",
		"a",
		"<a>",
		"<a></b>",
		"</a>",
		"<a/><b/>",
		"<a",
		"<a x='>",
		"<a>&x;</a>",
		"<a>&#0;</a>",
		"<a>&#xd800;</a>",
		"<a>&#x110000;</a>",
		"<a>&#99999999;</a>",
		"<a>& </a>",
		"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
		"<a><!-- </a>",
		"<a><![CDATA[ </a>",
		"<></>",
		"<a><b></a></b>",
		"<a><a><a><a><a><a><a><a><a><a><a><a><a>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char *text = told(good[i][0]);

		assert_non_null(text);
		assert_string_equal(text, good[i][1]);
		free(text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(told(bad[i]));
}

static void places(void **state)
{
	static const char text[] = "<R><C><K>x</K></C><K>y</K></R>";
	struct xml x;
	int seen = 0, event;

	(void)state;
	xml_begin(&x, text, sizeof(text) - 1);
	while ((event = xml_next(&x, NULL)) > XML_END) {
		if (event != XML_CLOSE)
			continue;
		seen += xml_is(&x, "R/C/K") && strcmp(xml_text(&x), "x") == 0;
		seen += 10 * (xml_is(&x, "R/K") && strcmp(xml_text(&x), "y") == 0);
		seen += 100 * xml_is(&x, "*/C");
		seen += 1000 * (xml_is(&x, "R/C/") || xml_is(&x, "R/CC") || xml_is(&x, ""));
	}
	xml_end(&x);
	assert_int_equal(event, XML_END);
	assert_int_equal(seen, 111);
}

static void long_texts(void **state)
{
	struct buf b = {0};
	char *text;

	(void)state;
	buf_puts(&b, "<a>");
	while (b.len < XML_TEXT_MAX)
		buf_puts(&b, "0123456789");
	buf_puts(&b, "0123456789</a>");
	assert_null(told(b.data));
	buf_reset(&b);
	buf_puts(&b, "<");
	while (b.len < XML_NAME_MAX)
		buf_putc(&b, 'n');
	text = b.data;
	assert_null(told(text));
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(places),
		cmocka_unit_test(long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
