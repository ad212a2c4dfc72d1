#pragma once
/* Which program this is: "0.1.0-3f2a91c4d0e1", the version with a digest of the sources and of how
 * they were compiled. Programs with the same text lay out their data alike and measure alike. */
extern const char build_id[];
