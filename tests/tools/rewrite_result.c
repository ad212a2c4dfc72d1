/* rewrite_result FOLDER: writes the files of figures of a result again, from its measures.bin and
 * its configuration as they are now. What a forger would use who knows the program. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "judge/judge.h"
#include "readback/record.h"
#include "result/measures.h"
#include "result/sink.h"

int main(int argc, char **argv)
{
	struct run_record r = {0};
	struct dataset dataset;
	struct result result = {0};
	struct run_metrics m = {0};
	struct buf file = {0};
	struct err e = {0};
	char path[4200];
	int rc;

	if (argc != 2)
		return 2;
	snprintf(path, sizeof(path), "%s/" MEASURES_FILE, argv[1]);
	record_load(&r, argv[1]);
	rc = r.has_workload ? dataset_init(&dataset, &r.workload, &e) : -1;
	if (rc == 0)
		rc = file_read(path, (size_t)1 << 30, &file, &e);
	if (rc == 0)
		rc = measures_read(&result, &r.workload, &dataset, file.data, file.len, path, &e);
	snprintf(result.folder, sizeof(result.folder), "%s", argv[1]);
	if (rc == 0)
		rc = metrics_compute(&m, &result, &e);
	if (rc == 0)
		rc = judge_result(&result, &m, &e);
	if (rc == 0)
		rc = sinks_write(&result, &m, &e);
	if (rc < 0)
		fprintf(stderr, "%s\n", r.broken ? r.broken : e.text);
	return rc < 0;
}
