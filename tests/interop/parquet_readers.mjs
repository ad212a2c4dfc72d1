// node parquet_readers.mjs FOLDER < JOB: DuckDB, Rust's parquet and hyparquet, of FOLDER/node_modules, over files of ours, and
// files that DuckDB writes. JOB is JSON:
//   read: [{file, values, types, groups}]: what each reader makes of `file` is compared with the bytes of `values`/COLUMN, PLAIN
//     values as parquet_tool leaves them; types: one of f2 f4 f8 i4 i8 b s x for each column
//   write: [{file, sql}]: DuckDB runs `sql`; rows, chunks and values of `file` come out as `written`
//   chunks: [file]: what DuckDB finds in the metadata
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(path.join(folder, 'node_modules', name)));
const {DuckDBInstance} = await load('@duckdb/node-api/lib/index.js');
const wasm = await load('parquet-wasm/node/parquet_wasm.js');
const arrow = await load('apache-arrow/Arrow.mjs');
const {parquetMetadata, parquetRead} = await load('hyparquet/src/index.js');
const {compressors} = await load('hyparquet-compressors/src/index.js');
const job = JSON.parse(fs.readFileSync(0, 'utf8'));
const duck = await (await DuckDBInstance.create(':memory:', {threads: '1'})).connect();

// nested values one after another, without nulls
function* flat(v) {
  if (v === null || v === undefined) return;
  if (typeof v !== 'object' || v instanceof Uint8Array && v.isText) { yield v; return; }
  for (const x of v) yield* flat(x);
}
function half(h) {
  const e = h >> 10 & 31, m = h & 1023, s = h >> 15 ? -1 : 1;
  return e === 0 ? s * m * 2 ** -24 : e === 31 ? (m ? NaN : s * Infinity) : s * (1 + m / 1024) * 2 ** (e - 15);
}
function plain(type, values) {
  const bytes = (a) => Buffer.from(a.buffer, a.byteOffset, a.byteLength);
  if (type === 's' || type === 'x') {
    const parts = [];
    for (const v of values) {
      const b = typeof v === 'string' ? Buffer.from(v) : Buffer.from(v);
      const n = Buffer.alloc(4);
      n.writeUInt32LE(b.length);
      parts.push(n, b);
    }
    return Buffer.concat(parts);
  }
  const all = [];
  for (const v of values) for (const x of flat(v)) all.push(x);
  if (type === 'f2' || type === 'f4') return bytes(Float32Array.from(all));
  if (type === 'f8') return bytes(Float64Array.from(all));
  if (type === 'i4') return bytes(Int32Array.from(all, Number));
  if (type === 'i8') return bytes(BigInt64Array.from(all, BigInt));
  return bytes(Uint8Array.from(all, Number));
}
function expected(type, raw) {
  if (type !== 'f2') return raw;
  const out = new Float32Array(raw.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = half(raw.readUInt16LE(2 * i));
  return Buffer.from(out.buffer);
}
const quoted = (file) => `'${file.replaceAll("'", "''")}'`;

const READERS = {
  async duckdb(file) {
    const got = await duck.runAndReadAll(`SELECT * FROM read_parquet(${quoted(file)}, binary_as_string=false)`);
    return got.getColumnsJS();
  },
  // Rust's
  parquet(file) {
    const table = arrow.tableFromIPC(wasm.readParquet(new Uint8Array(fs.readFileSync(file))).intoIPCStream());
    return table.schema.fields.map((f) => table.getChild(f.name));
  },
  async hyparquet(file) {
    const bytes = fs.readFileSync(file), buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    const columns = parquetMetadata(buffer).schema[0].num_children, out = Array.from({length: columns}, () => []);
    await parquetRead({file: buffer, compressors, utf8: false, rowFormat: 'array',
      onComplete: (rows) => { for (const row of rows) row.forEach((v, k) => out[k].push(v)); }});
    return out;
  },
};
const out = {readers: Object.keys(READERS), compared: 0, written: [], chunks: []};

for (const {file, values, types} of job.read) {
  for (const [name, read] of Object.entries(READERS)) {
    const columns = await read(file);
    if (columns.length !== types.length) throw Error(`${name}, ${file}: ${columns.length} columns`);
    types.forEach((type, k) => {
      const want = expected(type, fs.readFileSync(path.join(values, String(k)))), got = plain(type, columns[k]);
      if (!got.equals(want)) {
        let i = 0;
        while (got[i] === want[i]) i++;
        throw Error(`${name}, ${file}, column ${k}: ${got.length} bytes of values and not ${want.length}, other ones from ${i} on`);
      }
      out.compared++;
    });
  }
}
async function chunks(file) {
  const got = await duck.runAndReadAll('SELECT row_group_id, column_id, data_page_offset, dictionary_page_offset, '
    + `total_compressed_size, num_values, row_group_num_rows FROM parquet_metadata(${quoted(file)}) ORDER BY 1, 2`);
  return got.getRowsJS().map((row) => row.map((v) => v === null ? 0 : Number(v)));
}
for (const file of job.chunks) out.chunks.push(await chunks(file));
for (const {file, sql} of job.write) {
  await duck.run(sql);
  const got = await duck.runAndReadAll(`SELECT * FROM read_parquet(${quoted(file)})`);
  const pages = await duck.runAndReadAll(`SELECT DISTINCT encodings FROM parquet_metadata(${quoted(file)})`);
  out.written.push({chunks: await chunks(file), encodings: pages.getRowsJS().flat().join(' '),
    columns: got.getColumnsJS().map((c) => [...c].map((v) => typeof v === 'bigint' ? String(v) : v))});
}
process.stdout.write(JSON.stringify(out));
