/* What Hydra leaves beside DLIO's results: .hydra/config.yaml, overrides.yaml and hydra.yaml.
 * Submission checkers read the first two. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/program.h"
#include "conf/node.h"
#include "result/result.h"
#include "result/sink.h"

static struct node *new_map(void)
{
	return node_new(NODE_MAP, (struct node_mark){0});
}

static struct node *new_text(const char *s)
{
	return s ? node_new_str(s, (struct node_mark){0})
		 : node_new(NODE_NULL, (struct node_mark){0});
}

static struct node *new_integer(int64_t v)
{
	struct node *n = node_new(NODE_INT, (struct node_mark){0});

	n->i = v;
	n->f = (double)v;
	return n;
}

static struct node *new_boolean(bool v)
{
	struct node *n = node_new(NODE_BOOL, (struct node_mark){0});

	n->b = v;
	return n;
}

static struct node *new_list(const struct str_list *items)
{
	struct node *n = node_new(NODE_LIST, (struct node_mark){0});

	for (size_t i = 0; items && i < items->n; i++)
		node_append(n, new_text(items->v[i]));
	return n;
}

/* The map at `key`, made when it is not there. */
static struct node *add_map(struct node *parent, const char *key)
{
	node_set(parent, key, new_map());
	return node_get(parent, key);
}

static void add_text(struct node *parent, const char *key, const char *value)
{
	node_set(parent, key, new_text(value));
}

static void add_plugins(struct node *hydra)
{
	static const char *const logging[] = {"hydra_logging", "job_logging"};
	struct node *n = add_map(hydra, "launcher");

	add_text(n, "_target_", "hydra._internal.core_plugins.basic_launcher.BasicLauncher");
	n = add_map(hydra, "sweeper");
	add_text(n, "_target_", "hydra._internal.core_plugins.basic_sweeper.BasicSweeper");
	add_text(n, "max_batch_size", NULL);
	add_text(n, "params", NULL);
	n = add_map(hydra, "help");
	add_text(n, "app_name", "dlio_benchmark");
	add_text(n, "header", "stoker emulates the input and output of deep-learning training");
	add_text(n, "footer", "stoker help run");
	add_text(n, "template", "${hydra.help.header}\n\n${hydra.help.footer}\n");
	n = add_map(hydra, "hydra_help");
	add_text(n, "template", "${hydra.help.header}");
	add_text(n, "hydra_help", "???");
	for (size_t i = 0; i < 2; i++) {
		n = add_map(hydra, logging[i]);
		node_set(n, "version", new_integer(1));
		add_text(add_map(n, "root"), "level", "ERROR");
		node_set(n, "disable_existing_loggers", new_boolean(true));
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_job(struct node *hydra, const struct workload *w)
{
	struct node *job = add_map(hydra, "job"), *dirname;
	char **sorted = xcalloc(w->overrides.n + 1, sizeof(*sorted));
	struct buf b = {0};

	if (w->overrides.n)
		memcpy(sorted, w->overrides.v, w->overrides.n * sizeof(*sorted));
	qsort(sorted, w->overrides.n, sizeof(*sorted), by_text);
	for (size_t i = 0; i < w->overrides.n; i++)
		buf_printf(&b, "%s%s", i ? "," : "", sorted[i]);
	add_text(job, "name", "main");
	add_text(job, "chdir", NULL);
	add_text(job, "override_dirname", b.data ? b.data : "");
	add_text(job, "id", "???");
	add_text(job, "num", "???");
	add_text(job, "config_name", "config");
	node_set(job, "env_set", new_map());
	node_set(job, "env_copy", new_list(NULL));
	dirname = add_map(add_map(job, "config"), "override_dirname");
	add_text(dirname, "kv_sep", "=");
	add_text(dirname, "item_sep", ",");
	node_set(dirname, "exclude_keys", new_list(NULL));
	buf_release(&b);
	free(sorted);
}

static void add_source(struct node *list, const char *path, const char *schema,
		       const char *provider)
{
	struct node *n = new_map();

	add_text(n, "path", path);
	add_text(n, "schema", schema);
	add_text(n, "provider", provider);
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
	struct node *n = add_map(hydra, "runtime"), *sources = new_list(NULL), *chosen;
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	AUTO_FREE char *config_dir = w->config_dir ? path_absolute(w->config_dir) : NULL;
	AUTO_FREE char *out = path_absolute(parent);

	add_text(n, "version", "1.3.2");
	add_text(n, "version_base", "1.3");
	add_text(n, "cwd", cwd ? cwd : ".");
	add_source(sources, "hydra.conf", "pkg", "hydra");
	add_source(sources, "dlio_benchmark.configs", "pkg", "main");
	if (config_dir)
		add_source(sources, config_dir, "file", "command-line");
	add_source(sources, "", "structured", "schema");
	node_set(n, "config_sources", sources);
	add_text(n, "output_dir", out);
	chosen = add_map(n, "choices");
	add_text(chosen, "workload", w->choice);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		add_text(chosen, choices[i][0], choices[i][1]);
}

static struct node *hydra_tree(const struct workload *w, const char *parent)
{
	struct node *root = new_map(), *hydra = add_map(root, "hydra"), *n, *mode;

	add_text(add_map(hydra, "run"), "dir", w->run_dir);
	n = add_map(hydra, "sweep");
	add_text(n, "dir", "multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}");
	add_text(n, "subdir", "${hydra.job.num}");
	add_plugins(hydra);
	node_set(hydra, "env", new_map());
	add_text(hydra, "mode", "RUN");
	node_set(hydra, "searchpath", new_list(NULL));
	node_set(hydra, "callbacks", new_map());
	add_text(hydra, "output_subdir", w->hydra_subdir);
	n = add_map(hydra, "overrides");
	mode = new_list(&w->hydra_overrides);
	node_append(mode, new_text("hydra.mode=RUN"));
	node_set(n, "hydra", mode);
	node_set(n, "task", new_list(&w->overrides));
	add_job(hydra, w);
	add_runtime(hydra, w, parent);
	node_set(hydra, "verbose", new_boolean(false));
	return root;
}

static int put_yaml(struct sink_out *out, const struct node *tree, const char *folder,
		    const char *name, struct err *e)
{
	struct buf b = {0};
	int rc;

	buf_puts(&b, "# " PROGRAM_WROTE "\n");
	yaml_emit(tree, &b);
	rc = sink_put(out, folder, name, b.data, b.len, e);
	buf_release(&b);
	return rc;
}

/* Hydra's folder is apart from output.folder only for who asks for it: with output.folder alone,
 * DLIO leaves these files in a dated folder of the current directory, where nobody looks for them.
 */
static const char *parent_folder(const struct result *r)
{
	const struct workload *w = r->workload;

	if (r->unwritable)
		return r->folder;
	for (size_t i = 0; i < w->hydra_overrides.n; i++)
		if (strstr(w->hydra_overrides.v[i], "hydra.run"))
			return w->run_dir;
	return w->output.folder && !w->compat.dlio ? w->output.folder : w->run_dir;
}

static int render_hydra(const struct result *r, const struct run_metrics *m, struct sink_out *out,
			struct err *e)
{
	const struct workload *w = r->workload;
	AUTO_FREE char *folder = NULL;
	struct node *tree;
	int rc;

	(void)m;
	if (!w->hydra_subdir || !w->run_dir || !w->composed)
		return 0;
	folder = path_join(parent_folder(r), w->hydra_subdir);
	rc = put_yaml(out, w->composed, folder, "config.yaml", e);
	if (rc == 0) {
		tree = new_list(&w->overrides);
		rc = put_yaml(out, tree, folder, "overrides.yaml", e);
		node_free(tree);
	}
	if (rc == 0) {
		tree = hydra_tree(w, parent_folder(r));
		rc = put_yaml(out, tree, folder, "hydra.yaml", e);
		node_free(tree);
	}
	return rc;
}

extern const struct sink_ops sink_hydra;
const struct sink_ops sink_hydra = {
	.name = "hydra",
	.help = "config.yaml, overrides.yaml and hydra.yaml as Hydra writes them",
	.render = render_hydra,
};
