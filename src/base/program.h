#pragma once
/* The program's name and version, as every file of a result says them: in JSON as the value of the
 * key "program", elsewhere as "Written by " and this. Readers of DLIO's files look up keys by name,
 * and do not see it. */
#define PROGRAM_MARK "stoker " STOKER_VERSION
#define PROGRAM_WROTE "Written by " PROGRAM_MARK

/* Which program this is: "0.1.0-3f2a91c4d0e1", the version with a digest of the sources and of how
 * they were compiled. Programs with the same text lay out their data alike and measure alike. */
extern const char build_id[];
/* The commit that was built ("5a4cc88f3c2d", with "+" behind it where sources differ from it); "":
 * the sources are in no repository of their own. */
extern const char build_commit[];
/* What kind of build it is: "portable, for x86_64, with io_uring". */
extern const char build_traits[];
