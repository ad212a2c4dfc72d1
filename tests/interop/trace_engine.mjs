// node trace_engine.mjs FOLDER TRACE: what Chrome's performance panel makes of a trace, as JSON on stdout. FOLDER holds
// its engine, @paulirish/trace_engine.
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, trace] = process.argv.slice(2);
globalThis.DOMRect ??= class {
  constructor(x, y, width, height) { Object.assign(this, {x, y, width, height}); }
};
const engine = await import(pathToFileURL(
    path.join(folder, 'node_modules/@paulirish/trace_engine/models/trace/trace.js')));
const file = JSON.parse(fs.readFileSync(trace, 'utf8'));
const model = engine.TraceModel.Model.createWithAllHandlers();
await model.parse(file.traceEvents, {metadata: {}});
const {Meta, Renderer} = model.parsedTrace().data;
const out = {generic: Meta.traceIsGeneric, threads: []};
for (const [pid, process_] of Renderer.processes) {
  for (const [tid, thread] of process_.threads) {
    const spans = thread.entries.map((entry) => {
      const node = thread.entryToNode?.get(entry) ?? Renderer.entryToNode.get(entry);
      return [entry.cat, entry.name, entry.ts, entry.dur, node?.selfTime ?? -1, node?.parent?.entry.name ?? '',
              node?.depth ?? -1];
    });
    out.threads.push({pid, tid, name: thread.name, spans});
  }
}
process.stdout.write(JSON.stringify(out));
