/**
 * Preloaded into an app: appends each distinct statement that the app sends to PostgreSQL to RECORD_STATEMENTS, as
 * JSON.
 */
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const file = process.env['RECORD_STATEMENTS'];
const { Client } = createRequire(new URL('../../packages/db/package.json', import.meta.url))('pg');
/** @type {Set<string>} */
const seen = new Set();
const query = Client.prototype.query;
/** @param {unknown[]} args */
Client.prototype.query = function (...args) {
  const [first] = args;
  const text = typeof first === 'string' ? first : first?.text;
  if (file !== undefined && typeof text === 'string' && !seen.has(text)) {
    seen.add(text);
    appendFileSync(file, `${JSON.stringify(text)}\n`);
  }
  return query.apply(this, args);
};
