import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { root } from '../bootstrap.js';
import { CHART, chartDigest, COTURN_FILES, headOf, RENDERED } from './chart.js';
import { isSelectedBy, parseManifests, podOf, problemsOf, type Container, type Manifest } from './manifests.testkit.js';

/** Checks the rendered chart without Helm. kubernetes.full.test.ts renders it with other values. */

const FILES = ['1-migrate.yaml', '2-apps.yaml'];
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const manifests = FILES.flatMap((file) => parseManifests(readFileSync(join(RENDERED, file), 'utf8')));
const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
const workloads = manifests.filter((manifest) => podOf(manifest) !== null);
const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'];
const appOf = ({ image }: Container) => /^callplane\/([a-z-]+):/.exec(image)?.[1];
const apps = workloads
  .flatMap((manifest) => (podOf(manifest).containers as Container[]).map((container) => ({ manifest, container })))
  .filter(({ container }) => [...APPS, 'cli'].includes(appOf(container) ?? ''));
/** The part of the container's memory that V8's heap may take. */
function heapShareOf(container: Container): number {
  const [, semi, old] = /semi-space-size=(\d+) --max-old-space-size=(\d+)/.exec(envOf(container)['NODE_OPTIONS']!)!;
  return (Number(old) + 3 * Number(semi)) / Number.parseInt(container.resources.limits.memory);
}
const envOf = ({ env = [] }: Container) => Object.fromEntries(env.map(({ name, value }) => [name, value]));
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, { environment?: Record<string, string>; secrets?: string[] }>;
  secrets: Record<string, unknown>;
};

describe('infra/kubernetes', () => {
  test('comes from the present chart', () => {
    const command = 'node scripts/dev.mjs kubernetes';
    for (const file of FILES) {
      const text = readFileSync(join(RENDERED, file), 'utf8');
      expect([`Run: ${command}`, text.startsWith(headOf(chartDigest()))]).toEqual([`Run: ${command}`, true]);
    }
    for (const file of COTURN_FILES) {
      expect(readFileSync(join(CHART, 'files', file), 'utf8')).toBe(read(`infra/coturn/${file}`));
    }
  });

  test('is valid according to the API of Kubernetes, and a wrong property is found', () => {
    expect(problemsOf(manifests)).toEqual([]);
    const broken = structuredClone<Manifest>(ofKind('Deployment')[0]!);
    broken.spec.template.spec.containers[0].livenesProbe = {};
    broken.spec.strategy.rollingUpdate.maxSurge = true;
    delete broken.spec.selector;
    expect(problemsOf([broken]).join('\n')).toMatch(/selector[\s\S]*maxSurge[\s\S]*livenesProbe/);
  });

  test('has one name for each resource, in one namespace', () => {
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(manifests.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['callplane']));
  });

  test('runs every app, and migrates as a hook before it', () => {
    expect(apps.map(({ container }) => appOf(container)).sort()).toEqual([...APPS, 'cli', 'cli', 'cli'].sort());
    const [job] = ofKind('Job');
    expect(job!.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
    expect(podOf(job!).containers[0].args).toEqual(['db', 'migrate']);
  });
});

describe('the pods', () => {
  test.each(workloads.map((manifest) => [manifest.metadata.name, manifest] as const))(
    '%s has no rights that it does not need, and bounded memory',
    (_name, manifest) => {
      const pod = podOf(manifest);
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      });
      for (const container of pod.containers as Container[]) {
        expect(container.securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources.limits.memory).toBe(container.resources.requests.memory);
        // The agent of a media server and the pod of the command line have no health of their own.
        const hasProbes = manifest.kind !== 'Job' && !['agent', 'cli'].includes(container.name);
        if (hasProbes) expect(container).toMatchObject({ livenessProbe: {}, readinessProbe: {} });
      }
      const mounts = (pod.containers as Container[]).flatMap(({ volumeMounts }) => volumeMounts);
      const mounted = mounts.map(({ name }) => name).sort();
      expect(mounted).toEqual(pod.volumes.map(({ name }: { name: string }) => name).sort());
    },
  );

  test.each(apps.map(({ manifest, container }) => [manifest.metadata.name, manifest, container] as const))(
    '%s gets only known settings, and its secrets as files',
    async (_name, manifest, container) => {
      const app = appOf(container)!;
      const module = await import(pathToFileURL(join(root, 'apps', app, 'dist', 'config.js')).href);
      const config = Object.values(module).find((each) => typeof each === 'object') as {
        properties: Record<string, { secret?: boolean }>;
      };
      const isAgent = container.name === 'agent';
      const volumeName = isAgent ? 'agent-secrets' : 'secrets';
      const volume = podOf(manifest).volumes.find(({ name }: { name: string }) => name === volumeName);
      const keys = volume.projected.sources[0].secret.items.map(({ key }: { key: string }) => key);
      for (const [name, value] of Object.entries(envOf(container))) {
        if (['NODE_ENV', 'NODE_OPTIONS', 'POD_NAME'].includes(name)) continue;
        const setting = config.properties[name.replace(/_FILE$/, '')];
        expect([name, setting?.secret === true]).toEqual([name, name.endsWith('_FILE')]);
        expect([name, setting]).toEqual([name, expect.anything()]);
        if (name.endsWith('_FILE')) expect(keys).toContain(basename(value!));
      }
      // The files are those of infra/secrets.sh, and the same as in docker-compose.yml.
      expect(Object.keys(compose.secrets)).toEqual(expect.arrayContaining(keys));
      const service = manifest.kind === 'Job' ? 'migrate' : app;
      const expected = isAgent
        ? ['media_api_secret', 'media_database_url', 'redis_url']
        : compose.services[service]!.secrets!;
      expect(keys.sort()).toEqual([...expected].sort());
    },
  );

  test.each(
    apps
      .filter(({ container }) => container.name === 'app')
      .map(({ manifest, container }) => [manifest.metadata.name, manifest, container] as const),
  )('%s has time to drain, and a heap that fits', (_name, manifest, container) => {
    const env = envOf(container);
    const stopMs = Number(env['DRAIN_DELAY_MS'] ?? 0) + Number(env['SHUTDOWN_DEADLINE_MS']);
    expect(podOf(manifest).terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(stopMs + 5000);
    expect(Number(env['DRAIN_IDLE_MS'] ?? 0)).toBeLessThan(Number(env['SHUTDOWN_DEADLINE_MS']));
    expect(heapShareOf(container)).toBeCloseTo(2 / 3, 2);
    // A new version that does not become ready replaces no pod.
    expect(manifest.spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(podOf(manifest).topologySpreadConstraints).toHaveLength(2);
  });

  test('have a heap that fits where they run rtc', () => {
    const shares = apps
      .filter(({ container }) => appOf(container) === 'cli')
      .map(({ container }) => heapShareOf(container));
    expect(shares).toHaveLength(3);
    for (const share of shares) expect(share).toBeLessThan(2 / 3);
  });

  test('of media servers and relays are on the network of their machines, one on each', () => {
    const sets = ofKind('StatefulSet');
    expect(sets.map(({ metadata }) => metadata.name).sort()).toEqual(['callplane-coturn', 'callplane-janus']);
    for (const set of sets) {
      const pod = podOf(set);
      expect([pod.hostNetwork, pod.dnsPolicy]).toEqual([true, 'ClusterFirstWithHostNet']);
      const [rule] = pod.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution;
      expect(rule.topologyKey).toBe('kubernetes.io/hostname');
      expect(isSelectedBy(rule.labelSelector, set.spec.template.metadata.labels)).toBe(true);
    }
    const cleanup = envOf(apps.find(({ container }) => appOf(container) === 'cleanup-worker')!.container);
    expect(cleanup['MEDIA_NODES']).toBeUndefined();
    const agent = apps.find(({ container }) => container.name === 'agent')!.container;
    expect(agent.args).toEqual(['media', 'agent', '$(POD_NAME)', 'ws://$(POD_NAME).callplane-janus:8188']);
    expect(cleanup['TURN_ADMIN_URLS']).toBe('telnet://callplane-coturn-0.callplane-coturn:5766');
  });
});

describe('the other resources', () => {
  test('every app has a disruption budget and a network policy, and every selector finds its pods', () => {
    for (const { spec, metadata } of ofKind('Deployment')) {
      const labels = spec.template.metadata.labels as Record<string, string>;
      expect(isSelectedBy(spec.selector, labels)).toBe(true);
      const budgets = ofKind('PodDisruptionBudget').filter((each) => isSelectedBy(each.spec.selector, labels));
      const policies = ofKind('NetworkPolicy').filter((each) => isSelectedBy(each.spec.podSelector, labels));
      // The pod of the command line must not hold up the drain of a machine.
      const budgetsWanted = metadata.name === 'callplane-cli' ? 0 : 1;
      expect([metadata.name, budgets.length, policies.length]).toEqual([metadata.name, budgetsWanted, 1]);
      expect(policies[0]!.spec.policyTypes).toEqual(['Ingress', 'Egress']);
    }
    for (const service of ofKind('Service')) {
      const found = workloads.filter(({ spec }) =>
        isSelectedBy({ matchLabels: service.spec.selector }, spec.template.metadata.labels),
      );
      expect([service.metadata.name, found.length]).toEqual([service.metadata.name, 1]);
    }
  });

  test('autoscalers scale existing Deployments, which set no number of their own', () => {
    const scaled = ofKind('HorizontalPodAutoscaler').map(({ spec }) => spec.scaleTargetRef.name as string);
    expect(scaled.sort()).toEqual(['callplane-api', 'callplane-signaling', 'callplane-webhook-worker']);
    for (const { metadata, spec } of ofKind('Deployment')) {
      expect([metadata.name, spec.replicas === undefined]).toEqual([metadata.name, scaled.includes(metadata.name)]);
    }
  });

  test('webhook workers may not reach private addresses of the cluster', () => {
    const policy = ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === 'callplane-webhook-worker')!;
    const [internet] = policy.spec.egress.filter(({ to }: { to?: object }) => to !== undefined);
    const denied = internet.to.flatMap(({ ipBlock }: { ipBlock: { except: string[] } }) => ipBlock.except);
    expect(denied).toEqual(expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', 'fc00::/7']));
  });
});
