/* Names of interfaces against their addresses. */
#include "comm/interface.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

/* The bytes of an address; NULL for other families. */
static const unsigned char *bytes_of(const struct sockaddr *a, unsigned *bits)
{
	if (a->sa_family == AF_INET) {
		*bits = 32;
		return (const unsigned char *)&((const struct sockaddr_in *)a)->sin_addr;
	}
	*bits = 128;
	return a->sa_family == AF_INET6
		       ? (const unsigned char *)&((const struct sockaddr_in6 *)a)->sin6_addr
		       : NULL;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

/* "10.1.0.0/16", or an address alone. */
static bool in_network(const struct sockaddr *a, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	unsigned char network[16];
	unsigned bits, most;
	const unsigned char *own = bytes_of(a, &most);
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	int64_t said;

	if (!own || n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(a->sa_family, address, network) != 1)
		return false;
	bits = most;
	if (slash) {
		if (!str_to_i64(slash + 1, &said) || said < 0 || said > (int64_t)most)
			return false;
		bits = (unsigned)said;
	}
	return same_bits(own, network, bits);
}

static bool resolves_to(const struct sockaddr *a, const char *host)
{
	const struct addrinfo ask = {.ai_family = a->sa_family, .ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	unsigned bits;
	const unsigned char *own = bytes_of(a, &bits);
	bool found = false;

	if (!own || getaddrinfo(host, NULL, &ask, &all) != 0)
		return false;
	for (const struct addrinfo *i = all; i && !found; i = i->ai_next)
		found = i->ai_family == a->sa_family &&
			same_bits(own, bytes_of(i->ai_addr, &bits), bits);
	freeaddrinfo(all);
	return found;
}

static bool is_named(const struct ifaddrs *i, const char *word)
{
	if (strcmp(word, i->ifa_name) == 0)
		return true;
	/* the name of another interface is no host's */
	if (strchr(word, '/') || if_nametoindex(word) > 0)
		return in_network(i->ifa_addr, word);
	return in_network(i->ifa_addr, word) || resolves_to(i->ifa_addr, word);
}

bool interface_is_named(const struct ifaddrs *i, const char *list)
{
	static const char separators[] = ", \t";
	char word[256];

	while (i->ifa_addr && *(list += strspn(list, separators))) {
		size_t n = strcspn(list, separators);

		if (n < sizeof(word)) {
			memcpy(word, list, n);
			word[n] = '\0';
			if (is_named(i, word))
				return true;
		}
		list += n;
	}
	return false;
}
