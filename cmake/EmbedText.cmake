# Run by embed_text: FILE as the text SYMBOL, declared in HEADER.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* Written by cmake/EmbedText.cmake. */\n#include \"${HEADER}\"\nconst char ${SYMBOL}[] = {${bytes}0};\n")
