import { hashOf } from '../../src/random.js';

const known = new Map<string, string>();
const WRITES = /\b(INSERT INTO|UPDATE|DELETE FROM)\s+(?!SET\b|OF\b|SKIP\b)"?(?:public"?\."?)?(\w+)/g;
const READS = /\b(FROM|JOIN)\s+"?(?:public"?\."?)?(\w+)/g;

/** Names a statement: what it does to which tables, and a few characters that tell similar ones apart. */
export function labelOf(text: string, before: string): string {
  const short = text.trim();
  if (/^(COMMIT|ROLLBACK)/i.test(short)) return `${short} after ${before}`;
  let label = known.get(text);
  if (label === undefined) {
    const writes = [...text.matchAll(WRITES)].map(([, verb, table]) => `${verb} ${table}`);
    const [read] = text.matchAll(READS);
    const parts = writes.length > 0 ? [...new Set(writes)].slice(0, 3) : [`SELECT ${read?.[2] ?? ''}`];
    const mark = (hashOf(text) >>> 0).toString(36).slice(0, 4);
    label = /^\w+$/.test(short) ? short : `${parts.join(', ')} #${mark}`;
    known.set(text, label);
  }
  return label;
}
