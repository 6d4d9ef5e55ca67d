import { run, toolsEnvironment } from '../bootstrap.js';

/** Options of pnpm for the packages in the images (infra/Dockerfile). The image of the API has the console's bundle. */
export const IN_IMAGES = [
  ...['api', 'signaling', 'cleanup-worker', 'recorder', 'webhook-worker', 'cli', 'console'].flatMap((app) => [
    '--filter',
    `@callplane/${app}...`,
  ]),
  '--prod',
];

/** The part of CycloneDX that differs between two runs of pnpm. */
interface Bom {
  serialNumber?: string;
  metadata: { timestamp?: string; component: { version: string } };
  components: { 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

/**
 * The bill of materials of the images as pnpm writes it, in CycloneDX's JSON: every package of their production trees
 * with its licence, its hash from the lockfile, and its dependencies. The same commit gives the same bytes.
 */
export async function billOfMaterials(version: string): Promise<string> {
  const format = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-spec-version', '1.6', '--sbom-type', 'application'];
  const bom = JSON.parse(await run('pnpm', [...IN_IMAGES, ...format], { env: toolsEnvironment() })) as Bom;
  delete bom.metadata.timestamp;
  // Optional, and random.
  delete bom.serialNumber;
  bom.metadata.component.version = version;
  bom.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  bom.dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1));
  for (const { dependsOn } of bom.dependencies) dependsOn?.sort();
  return `${JSON.stringify(bom, null, 2)}\n`;
}
