import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../bootstrap.js';

/** The kinds in the chart, and the type of the API for each. */
const KINDS: Record<string, string> = {
  'v1 ConfigMap': 'V1ConfigMap',
  'v1 Service': 'V1Service',
  'apps/v1 Deployment': 'V1Deployment',
  'apps/v1 StatefulSet': 'V1StatefulSet',
  'autoscaling/v2 HorizontalPodAutoscaler': 'V2HorizontalPodAutoscaler',
  'batch/v1 Job': 'V1Job',
  'networking.k8s.io/v1 Ingress': 'V1Ingress',
  'networking.k8s.io/v1 NetworkPolicy': 'V1NetworkPolicy',
  'policy/v1 PodDisruptionBudget': 'V1PodDisruptionBudget',
};

/** Fields that servers write. No manifest contains them. */
const OF_SERVERS = new Set(['status', 'managedFields']);

export interface KubernetesSchemas {
  /** `apps/v1 Deployment` → the name of its definition. */
  kinds: Record<string, string>;
  $defs: Record<string, object>;
}

interface Attribute {
  baseName: string;
  type: string;
  format: string;
}

/**
 * JSON schemas of the kinds in the chart, made from the types of the official client. They allow no unknown property.
 * @param models folder with a `.js` and a `.d.ts` for each type
 */
export function kubernetesSchemas(models: string): KubernetesSchemas {
  const $defs: Record<string, object> = {};
  const define = (name: string): void => {
    if ($defs[name] !== undefined) return;
    const properties: Record<string, object> = {};
    // Types refer to each other in circles.
    $defs[name] = {};
    const [attributes, required] = readModel(models, name);
    for (const { baseName, type, format } of attributes) {
      if (!OF_SERVERS.has(baseName)) properties[baseName] = schemaOf(type, format, define);
    }
    $defs[name] = {
      type: 'object',
      properties,
      additionalProperties: false,
      ...(required.length > 0 ? { required } : {}),
    };
  };
  for (const type of Object.values(KINDS)) define(type);
  return { kinds: KINDS, $defs: Object.fromEntries(Object.entries($defs).sort(([a], [b]) => (a < b ? -1 : 1))) };
}

/** The properties of a type, and the names of the required ones. */
function readModel(models: string, name: string): [Attribute[], string[]] {
  const code = readFileSync(join(models, `${name}.js`), 'utf8');
  const list = /\.attributeTypeMap = (\[[\s\S]*?\n\]);/.exec(code)?.[1];
  if (list === undefined) throw new Failure(`${name} has no list of properties`);
  const declaration = readFileSync(join(models, `${name}.d.ts`), 'utf8');
  const attributes = JSON.parse(list) as Attribute[];
  const isRequired = ({ baseName }: Attribute) => declaration.includes(`\n    '${baseName}': `);
  return [attributes, attributes.filter(isRequired).map(({ baseName }) => baseName)];
}

function schemaOf(type: string, format: string, define: (name: string) => void): object {
  const items = /^(?:Array|Set)<(.*)>$/.exec(type)?.[1];
  if (items !== undefined) return { type: 'array', items: schemaOf(items, format, define) };
  const values = /^\{ \[key: string\]: (.*); \}$/.exec(type)?.[1];
  if (values !== undefined) return { type: 'object', additionalProperties: schemaOf(values, format, define) };
  switch (type) {
    case 'string':
    case 'Date':
    case 'V1MicroTime':
      return { type: 'string' };
    case 'number':
      return { type: format.startsWith('int') ? 'integer' : 'number' };
    case 'boolean':
    case 'object':
      return { type };
    case 'any':
      return {};
    case 'IntOrString':
      return { type: ['integer', 'string'] };
  }
  if (!/^V\d\w+$|^\w+V\d\w+$/.test(type)) throw new Failure(`The type ${type} is not known`);
  define(type);
  return { $ref: `#/$defs/${type}` };
}
