#include "base/elem.h"

#include <stddef.h>
#include <string.h>

const struct elem_type elem_table[] = {
	{"uint8", "|u1", 1, ELEM_INT},
	{"int8", "|i1", 1, ELEM_INT},
	{"uint16", "<u2", 2, ELEM_INT},
	{"int16", "<i2", 2, ELEM_INT},
	{"uint32", "<u4", 4, ELEM_INT},
	{"int32", "<i4", 4, ELEM_INT},
	{"uint64", "<u8", 8, ELEM_INT},
	{"int64", "<i8", 8, ELEM_INT},
	{"float16", "<f2", 2, ELEM_FLOAT},
	{"float32", "<f4", 4, ELEM_FLOAT},
	{"float64", "<f8", 8, ELEM_FLOAT},
	{"bool", "|b1", 1, ELEM_BOOL},
	{"complex64", "<c8", 8, ELEM_COMPLEX},
	{"complex128", "<c16", 16, ELEM_COMPLEX},
	{NULL, NULL, 0, ELEM_INT},
};

static const struct {
	const char *alias, *name;
} aliases[] = {
	{"int", "int64"},          {"float", "float64"},  {"half", "float16"},
	{"single", "float32"},     {"double", "float64"}, {"byte", "int8"},
	{"ubyte", "uint8"},        {"short", "int16"},    {"ushort", "uint16"},
	{"complex", "complex128"}, {"bool_", "bool"},     {"?", "bool"},
};

const struct elem_type *elem_find(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(name, aliases[i].alias) == 0)
			return elem_find(aliases[i].name);
	if (name[0] == '<' || name[0] == '|' || name[0] == '=')
		name++;
	for (const struct elem_type *t = elem_table; t->name; t++)
		if (strcmp(name, t->name) == 0 || strcmp(name, t->descr + 1) == 0)
			return t;
	return NULL;
}
