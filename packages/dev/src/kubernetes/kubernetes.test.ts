import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { root } from '../bootstrap.js';
import { CHART, chartDigest, COTURN_FILES, headOf, RENDERED } from './main.js';
import { isSelectedBy, parseManifests, podOf, problemsOf, type Container, type Manifest } from './manifests.testkit.js';

/** Checks the rendered chart without Helm. kubernetes.full.test.ts renders it with other values. */

const FILES = ['1-migrate.yaml', '2-apps.yaml'];
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const manifests = FILES.flatMap((file) => parseManifests(readFileSync(join(RENDERED, file), 'utf8')));
const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
const workloads = manifests.filter((manifest) => podOf(manifest) !== null);

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

  test('migrates as a hook before the apps start', () => {
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
  });
});

interface Rule {
  to?: object[];
  ports: { port: number }[];
}

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
      // A new version that does not become ready replaces no pod.
      if (budgetsWanted === 1) expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
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
    const internet = policy.spec.egress.find(({ ports }: Rule) => ports.some(({ port }) => port === 443));
    const denied = internet.to.flatMap(({ ipBlock }: { ipBlock: { except: string[] } }) => ipBlock.except);
    expect(denied).toEqual(expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', 'fc00::/7']));
  });

  test('every app reaches name servers, PostgreSQL and Redis at the configured addresses alone', () => {
    const closed = [53, 5432, 6432, 6379, 26379];
    const policies = ofKind('NetworkPolicy');
    expect(policies.length).toBeGreaterThanOrEqual(6);
    for (const { metadata, spec } of policies) {
      const rules = (spec.egress as Rule[]).filter(({ ports }) => ports.some(({ port }) => closed.includes(port)));
      expect([metadata.name, rules.flatMap(({ ports }) => ports.map(({ port }) => port))]).toEqual([
        metadata.name,
        [53, ...closed],
      ]);
      const targets = JSON.stringify(rules.map(({ to }) => to));
      expect([metadata.name, rules.every(({ to }) => (to ?? []).length > 0)]).toEqual([metadata.name, true]);
      expect(targets).toContain('"kubernetes.io/metadata.name":"kube-system"');
      expect(targets).toContain('"kubernetes.io/metadata.name":"data"');
      expect(targets).not.toMatch(/0\.0\.0\.0\/0|::\/0/);
    }
  });
});
