#pragma once
/* The network interfaces of this host, as launchers name them. */
#include <ifaddrs.h>
#include <stdbool.h>

/* Whether an address of this host is meant by a list separated by commas or blanks: of interfaces
 * ("ib0"), networks ("10.1.0.0/16", "fd00::/8"), addresses, and host names, which are resolved. */
bool interface_is_named(const struct ifaddrs *i, const char *list);
