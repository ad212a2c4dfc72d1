#pragma once
/* Shared by the files of the audit. Private to this folder. */
#include "readback/audit.h"

/* A new finding about record `i`; valid until the next one. */
struct finding *audit_add(struct audit *a, size_t i, const char *check, enum audit_level level);
/* Appends to its evidence, and sets its advice. */
void audit_say(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void audit_advise(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A check looks at one record of the audit; those that compare look at the others too. */
typedef void (*audit_check)(struct audit *a, size_t i);
extern const audit_check audit_time_checks[];   /* NULL-terminated: audit_time.c */
extern const audit_check audit_data_checks[];   /* audit_data.c */
extern const audit_check audit_config_checks[]; /* audit_config.c */
