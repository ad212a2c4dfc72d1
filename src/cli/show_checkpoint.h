#pragma once
/* stoker show checkpoint: what each rank would write, without writing it. The carry_out of a
 * command. */
struct command;
int show_checkpoint(const struct command *c, int argc, char **argv);
