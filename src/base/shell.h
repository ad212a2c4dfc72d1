#pragma once
#include "base/buf.h"

/* Appends a word as bash takes it from a script or a terminal, quoted where it must be. A word with
 * control characters, characters that mislead (say.h) or bytes that are no UTF-8 gets the form
 * $'\x1b', so that the command shows what it holds and still names the same bytes. */
void shell_put_word(struct buf *out, const char *word);
