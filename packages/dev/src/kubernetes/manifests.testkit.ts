import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { parseAllDocuments } from 'yaml';
import { SCHEMAS } from './main.js';
import type { KubernetesSchemas } from './schemas.js';

export interface Container {
  name: string;
  image: string;
  env?: { name: string; value?: string; valueFrom?: object }[];
  args?: string[];
  securityContext: Record<string, unknown>;
  resources: { requests: { memory: string }; limits: { memory: string } };
  livenessProbe?: object;
  readinessProbe?: object;
  startupProbe?: object;
  volumeMounts: { name: string; mountPath: string }[];
}

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace: string; labels: Record<string, string>; annotations?: Record<string, string> };
  spec: any;
}

export const parseManifests = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);

/** Kinds of KEDA and of the Prometheus operator. No package has schemas that name their unknown properties. */
const CUSTOM = ['keda.sh/v1alpha1 ScaledObject', 'monitoring.coreos.com/v1 PodMonitor'];

let compiled: { ajv: Ajv; kinds: Record<string, string> } | undefined;

/** Faults of manifests according to the API of Kubernetes. */
export function problemsOf(manifests: readonly Manifest[]): string[] {
  compiled ??= load();
  const { ajv, kinds } = compiled;
  return manifests.flatMap((manifest) => {
    const kind = `${manifest.apiVersion} ${manifest.kind}`;
    if (CUSTOM.includes(kind)) return [];
    const definition = kinds[kind];
    if (definition === undefined) return [`${kind}: unknown kind`];
    const validate = ajv.getSchema(`kubernetes#/$defs/${definition}`)!;
    const isValid: unknown = validate(manifest);
    if (isValid === true) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${kind} ${manifest.metadata.name}${instancePath} ${message ?? ''} ${JSON.stringify(params)}`;
    });
  });
}

function load(): { ajv: Ajv; kinds: Record<string, string> } {
  const { kinds, $defs } = JSON.parse(readFileSync(SCHEMAS, 'utf8')) as KubernetesSchemas;
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true });
  ajv.addSchema({ $id: 'kubernetes', $defs });
  return { ajv, kinds };
}

export const podOf = ({ kind, spec }: Manifest) =>
  ['Deployment', 'StatefulSet', 'Job'].includes(kind) ? spec.template.spec : null;

export const isSelectedBy = (selector: { matchLabels: Record<string, string> }, labels: Record<string, string>) =>
  Object.entries(selector.matchLabels).every(([name, value]) => labels[name] === value);
