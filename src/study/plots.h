#pragma once
/* The charts for papers, drawn by gnuplot: each as NAME.png (150 dpi), NAME.svg and NAME.pdf. */
#include "readback/groups.h"

/* Writes whole_au, au (DLIO's definition), throughput (samples/s) and one chart for each varied
 * parameter into `folder`, with NAME.gp and NAME.dat they are made of. ERR_ABSENT when there is no
 * gnuplot. */
int plots_write(const struct run_groups *g, const char *folder, struct err *e);
