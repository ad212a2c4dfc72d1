#pragma once
/* Credentials among the keys of a workload: they are moved into the environment (AWS_*), where
 * child processes find them and nothing writes them down, and another text takes their place. */

struct workload;

/* Of the words of a command line such as storage.storage_options.secret_access_key=... and
 * storage.storage_options={secret_access_key: ...}, in place, so that neither /proc nor command
 * lines of children show them. Before threads are started. */
void secret_hide_words(int argc, char **argv);
/* Of w->tree, w->composed and w->overrides. */
void secret_take(struct workload *w);
