#pragma once
/* The text of calibrate.py, which the build compiles in. */
extern const char calibrate_script[];
