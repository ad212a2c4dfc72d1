/* What Hydra leaves beside DLIO's results: .hydra/config.yaml, overrides.yaml and hydra.yaml.
 * Submission checkers read the first two. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "conf/node.h"
#include "result/result.h"
#include "result/sink.h"

static struct node *map(void)
{
	return node_new(NODE_MAP, (struct node_mark){0});
}

static struct node *text(const char *s)
{
	return s ? node_new_str(s, (struct node_mark){0})
		 : node_new(NODE_NULL, (struct node_mark){0});
}

static struct node *integer(int64_t v)
{
	struct node *n = node_new(NODE_INT, (struct node_mark){0});

	n->i = v;
	n->f = (double)v;
	return n;
}

static struct node *boolean(bool v)
{
	struct node *n = node_new(NODE_BOOL, (struct node_mark){0});

	n->b = v;
	return n;
}

static struct node *list_of(const struct str_list *items)
{
	struct node *n = node_new(NODE_LIST, (struct node_mark){0});

	for (size_t i = 0; items && i < items->n; i++)
		node_append(n, text(items->v[i]));
	return n;
}

/* The map at `key`, made when it is not there. */
static struct node *sub(struct node *parent, const char *key)
{
	node_set(parent, key, map());
	return node_get(parent, key);
}

static void put(struct node *parent, const char *key, const char *value)
{
	node_set(parent, key, text(value));
}

static void add_plugins(struct node *hydra)
{
	static const char *const logging[] = {"hydra_logging", "job_logging"};
	struct node *n = sub(hydra, "launcher");

	put(n, "_target_", "hydra._internal.core_plugins.basic_launcher.BasicLauncher");
	n = sub(hydra, "sweeper");
	put(n, "_target_", "hydra._internal.core_plugins.basic_sweeper.BasicSweeper");
	put(n, "max_batch_size", NULL);
	put(n, "params", NULL);
	n = sub(hydra, "help");
	put(n, "app_name", "dlio_benchmark");
	put(n, "header", "stoker emulates the input and output of deep-learning training");
	put(n, "footer", "stoker help run");
	put(n, "template", "${hydra.help.header}\n\n${hydra.help.footer}\n");
	n = sub(hydra, "hydra_help");
	put(n, "template", "${hydra.help.header}");
	put(n, "hydra_help", "???");
	for (size_t i = 0; i < 2; i++) {
		n = sub(hydra, logging[i]);
		node_set(n, "version", integer(1));
		put(sub(n, "root"), "level", "ERROR");
		node_set(n, "disable_existing_loggers", boolean(true));
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_job(struct node *hydra, const struct workload *w)
{
	struct node *job = sub(hydra, "job"), *dirname;
	char **sorted = xcalloc(w->overrides.n + 1, sizeof(*sorted));
	struct buf b = {0};

	if (w->overrides.n)
		memcpy(sorted, w->overrides.v, w->overrides.n * sizeof(*sorted));
	qsort(sorted, w->overrides.n, sizeof(*sorted), by_text);
	for (size_t i = 0; i < w->overrides.n; i++)
		buf_printf(&b, "%s%s", i ? "," : "", sorted[i]);
	put(job, "name", "main");
	put(job, "chdir", NULL);
	put(job, "override_dirname", b.data ? b.data : "");
	put(job, "id", "???");
	put(job, "num", "???");
	put(job, "config_name", "config");
	node_set(job, "env_set", map());
	node_set(job, "env_copy", list_of(NULL));
	dirname = sub(sub(job, "config"), "override_dirname");
	put(dirname, "kv_sep", "=");
	put(dirname, "item_sep", ",");
	node_set(dirname, "exclude_keys", list_of(NULL));
	buf_release(&b);
	free(sorted);
}

static void add_source(struct node *list, const char *path, const char *schema,
		       const char *provider)
{
	struct node *n = map();

	put(n, "path", path);
	put(n, "schema", schema);
	put(n, "provider", provider);
	node_append(list, n);
}

static void add_runtime(struct node *hydra, const struct workload *w, const char *parent)
{
	static const char *const choices[][2] = {
		{"hydra/env", "default"},          {"hydra/callbacks", NULL},
		{"hydra/job_logging", "disabled"}, {"hydra/hydra_logging", "disabled"},
		{"hydra/hydra_help", "default"},   {"hydra/help", "dlio_benchmark_help.yaml"},
		{"hydra/sweeper", "basic"},        {"hydra/launcher", "basic"},
		{"hydra/output", "default"},
	};
	struct node *n = sub(hydra, "runtime"), *sources = list_of(NULL), *chosen;
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *config_dir = w->config_dir ? path_absolute(w->config_dir) : NULL;
	AUTO_FREE char *out = path_absolute(parent);

	put(n, "version", "1.3.2");
	put(n, "version_base", "1.3");
	put(n, "cwd", cwd ? cwd : ".");
	add_source(sources, "hydra.conf", "pkg", "hydra");
	add_source(sources, "dlio_benchmark.configs", "pkg", "main");
	if (config_dir)
		add_source(sources, config_dir, "file", "command-line");
	add_source(sources, "", "structured", "schema");
	node_set(n, "config_sources", sources);
	put(n, "output_dir", out);
	chosen = sub(n, "choices");
	put(chosen, "workload", w->choice);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		put(chosen, choices[i][0], choices[i][1]);
}

static struct node *hydra_tree(const struct workload *w, const char *parent)
{
	struct node *root = map(), *hydra = sub(root, "hydra"), *n, *mode;

	put(sub(hydra, "run"), "dir", w->run_dir);
	n = sub(hydra, "sweep");
	put(n, "dir", "multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}");
	put(n, "subdir", "${hydra.job.num}");
	add_plugins(hydra);
	node_set(hydra, "env", map());
	put(hydra, "mode", "RUN");
	node_set(hydra, "searchpath", list_of(NULL));
	node_set(hydra, "callbacks", map());
	put(hydra, "output_subdir", w->hydra_subdir);
	n = sub(hydra, "overrides");
	mode = list_of(&w->hydra_overrides);
	node_append(mode, text("hydra.mode=RUN"));
	node_set(n, "hydra", mode);
	node_set(n, "task", list_of(&w->overrides));
	add_job(hydra, w);
	add_runtime(hydra, w, parent);
	node_set(hydra, "verbose", boolean(false));
	return root;
}

static int write_yaml(const struct node *tree, const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	struct buf b = {0};
	int rc;

	yaml_emit(tree, &b);
	rc = file_write(path, b.data ? b.data : "", b.len, e);
	buf_release(&b);
	return rc;
}

/* Hydra's folder is apart from output.folder only for who asks for it: with output.folder alone,
 * DLIO leaves these files in a dated folder of the current directory, where nobody looks for them.
 */
static const char *parent_folder(const struct result *r)
{
	const struct workload *w = r->workload;

	for (size_t i = 0; i < w->hydra_overrides.n; i++)
		if (strstr(w->hydra_overrides.v[i], "hydra.run"))
			return w->run_dir;
	return w->output.folder && !w->compat.dlio ? w->output.folder : w->run_dir;
}

static int render(const struct result *r, const struct run_metrics *m, struct err *e)
{
	const struct workload *w = r->workload;
	AUTO_FREE char *folder = NULL;
	struct node *tree;
	int rc;

	(void)m;
	if (!w->hydra_subdir || !w->run_dir || !w->composed)
		return 0;
	folder = path_join(parent_folder(r), w->hydra_subdir);
	rc = file_mkdirs(folder, e);
	if (rc < 0)
		return rc;
	rc = write_yaml(w->composed, folder, "config.yaml", e);
	if (rc == 0) {
		tree = list_of(&w->overrides);
		rc = write_yaml(tree, folder, "overrides.yaml", e);
		node_free(tree);
	}
	if (rc == 0) {
		tree = hydra_tree(w, parent_folder(r));
		rc = write_yaml(tree, folder, "hydra.yaml", e);
		node_free(tree);
	}
	return rc;
}

extern const struct sink_ops sink_hydra;
const struct sink_ops sink_hydra = {
	.name = "hydra",
	.help = "config.yaml, overrides.yaml and hydra.yaml as Hydra writes them",
	.render = render,
};
