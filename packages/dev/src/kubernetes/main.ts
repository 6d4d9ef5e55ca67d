/**
 * `node scripts/dev.mjs kubernetes`: renders the Helm chart with its default values into infra/kubernetes, for
 * `kubectl apply` without Helm, and writes the JSON schemas of its kinds. Installs Helm into .tools if it is missing.
 */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../bootstrap.js';
import { CHART, chartDigest, COTURN_FILES, headOf, RENDERED, SCHEMAS } from './chart.js';
import { kubernetesSchemas } from './schemas.js';
import { kubernetesTools } from './tools.js';

export async function main(): Promise<void> {
  const { helm, models } = await kubernetesTools();
  for (const file of COTURN_FILES) copyFileSync(join(root, 'infra', 'coturn', file), join(CHART, 'files', file));
  await run(helm, ['lint', '--strict', CHART], { failure: 'The chart has errors' });
  const documents = await render(helm, []);
  const isMigration = (document: string) => document.startsWith('# Source: callplane/templates/migrate.yaml');
  const head = headOf(chartDigest());
  mkdirSync(RENDERED, { recursive: true });
  write('1-migrate.yaml', head, documents.filter(isMigration));
  write(
    '2-apps.yaml',
    head,
    documents.filter((document) => !isMigration(document)),
  );
  writeFileSync(SCHEMAS, schemasText(kubernetesSchemas(models)));
  console.log('Wrote infra/kubernetes.');
}

/**
 * The documents of the chart for a release named `callplane` in a namespace of the same name.
 * @param values arguments of helm, such as `--set`, `keda.enabled=true`
 */
export async function render(helm: string, values: readonly string[]): Promise<string[]> {
  const text = await run(helm, ['template', 'callplane', CHART, '--namespace', 'callplane', ...values], {
    failure: 'The chart cannot be rendered',
  });
  return text
    .split(/^---$/m)
    .map((document) => `${document.trim()}\n`)
    .filter((document) => /^[^#\n]/m.test(document));
}

function write(name: string, head: string, documents: readonly string[]): void {
  writeFileSync(join(RENDERED, name), [head, ...documents].join('---\n').replaceAll(/[ \t]+$/gm, ''));
}

/** One line for each definition, so that a diff shows what has changed. */
function schemasText({ kinds, $defs }: { kinds: object; $defs: object }): string {
  const lines = Object.entries($defs).map(([name, schema]) => `${JSON.stringify(name)}:${JSON.stringify(schema)}`);
  return `{"kinds":${JSON.stringify(kinds)},"$defs":{\n${lines.join(',\n')}\n}}\n`;
}
