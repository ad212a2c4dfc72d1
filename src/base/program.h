#pragma once
/* The program's name and version, as every file of a result says them: in JSON as the value of the
 * key "program", elsewhere as "Written by " and this. Readers of DLIO's files look up keys by name,
 * and do not see it. */
#define PROGRAM_MARK "stoker " STOKER_VERSION
#define PROGRAM_WROTE "Written by " PROGRAM_MARK
