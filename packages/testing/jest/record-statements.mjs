import { appendFileSync } from 'node:fs';
import { subscribe } from 'node:diagnostics_channel';
import { join } from 'node:path';

/**
 * Writes the statements that this process runs to the folder CALLPLANE_STATEMENTS, each distinct one once, and again
 * with each column in which a null first appears. Loaded with `--import` into Jest's workers and the apps that they
 * spawn; src/statements/check-statements.ts reads the files at the end of the run.
 */
const folder = process.env.CALLPLANE_STATEMENTS;
const seen = new Set();

function record({ text, parts = [], rows = [] }) {
  for (const name of [null, ...rows.flatMap((row) => Object.keys(row).filter((key) => row[key] === null))]) {
    const line = JSON.stringify([text, parts, name]);
    if (seen.has(line)) continue;
    seen.add(line);
    appendFileSync(join(folder, `${process.pid}.jsonl`), `${line}\n`);
  }
}

// Some children of tests get Node's options without the other variables.
if (folder !== undefined) subscribe('callplane.statements', record);
