/**
 * Reads the manifests of the chart, and writes a list of the ones that Kubernetes 1.20 takes: `migration` or `others`.
 * Fields that it leaves out or replaces are younger than that version.
 */
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const { parseAllDocuments } = createRequire(new URL('../../packages/dev/package.json', import.meta.url))('yaml');

const OLDER_VERSIONS = { 'policy/v1': 'policy/v1beta1', 'autoscaling/v2': 'autoscaling/v2beta2' };
// Kubernetes added these fields in 1.21, 1.25 and 1.26.
const YOUNGER_FIELDS = new Set(['endPort', 'matchLabelKeys', 'unhealthyPodEvictionPolicy']);

const manifests = parseAllDocuments(await text(process.stdin))
  .map((document) => document.toJSON())
  .filter((manifest) => manifest !== null)
  .map((manifest) => ({
    ...withoutYoungerFields(manifest),
    apiVersion: OLDER_VERSIONS[manifest.apiVersion] ?? manifest.apiVersion,
  }));
const isMigration = ({ kind }) => kind === 'Job';
const wanted = manifests.filter((manifest) => isMigration(manifest) === (process.argv[2] === 'migration'));
console.log(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: wanted }));

function withoutYoungerFields(value) {
  if (Array.isArray(value)) return value.map(withoutYoungerFields);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(([name]) => !YOUNGER_FIELDS.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutYoungerFields(inner)]));
}
