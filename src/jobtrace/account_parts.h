#pragma once
/* The subjects of an account, in the order in which account_make goes through them. Each fills its
 * facts and its part of the tables from what those before it have found. Private to this folder. */
#include "jobtrace/account.h"

/* The role of each file, and the groups. */
void account_roles(struct account *a);
/* Groups in the order in which they are printed, and the roles of files as their groups have them;
 * after a group's role changed. */
void account_sort_groups(struct account *a);
/* Whether a part of the name is one that parts of datasets for evaluation have: val, test. */
bool account_is_evaluation_name(const char *name);

struct format_facts;
/* The format of files with this extension; NULL. */
const struct format_facts *account_format_of(const char *extension);
