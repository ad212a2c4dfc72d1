#pragma once
/* stoker show checkpoint: what each rank would write, without writing it. argv[0] is the topic.
 * Returns the exit status. */
int show_checkpoint(int argc, char **argv);
