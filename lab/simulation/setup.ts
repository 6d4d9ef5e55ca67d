import { newId, newWebhookEndpoint, seal, type Tenant } from '@callplane/core';
import { createEnvironment, createProject, insertWebhookEndpoint, registerMediaNode } from '@callplane/db';
import { MASTER_KEYS, openDatabase } from './apps/tasks.js';
import { TENANTS, type Plan } from './plan.js';
import { REGIONS } from './ports/media.js';
import { hostOf } from './receivers.js';

export interface Customers {
  readonly tenants: readonly Tenant[];
  /** In the order of the plan's receivers. */
  readonly endpoints: readonly { readonly id: string; readonly tenant: number }[];
  /** Of participants, one after another, if rooms may use several media servers: then they receive, too. */
  readonly regions: readonly string[];
}

/** Makes tenants and endpoints, an hour before the run. */
export async function setUp(databaseUrl: string, nowMs: number, plan: Plan): Promise<Customers> {
  const database = openDatabase(databaseUrl);
  const createdAt = new Date(nowMs - 3_600_000);
  const tenants: Tenant[] = [];
  for (let index = 0; index < TENANTS; index += 1) {
    const tenant = { projectId: newId('project'), environmentId: newId('environment') };
    await createProject(database.prisma, { id: tenant.projectId, name: 'Simulated', createdAt });
    const environment = { id: tenant.environmentId, projectId: tenant.projectId, name: 'simulated', createdAt };
    await createEnvironment(database.prisma, environment);
    tenants.push(tenant);
  }
  const endpoints: { id: string; tenant: number }[] = [];
  for (const [index, { tenant, ordering, maxConcurrent }] of plan.receivers.entries()) {
    const id = newId('webhookEndpoint');
    const url = `https://${hostOf(index)}/hook`;
    const endpoint = newWebhookEndpoint({ id, url, ordering, maxConcurrent, createdAt });
    const sealed = seal(MASTER_KEYS, `whsec_${Buffer.alloc(32, 5).toString('base64')}`, `webhook-secret:${id}:1`);
    endpoints.push({ id, tenant });
    await database.transaction((tx) => insertWebhookEndpoint(tx, tenants[tenant] as Tenant, endpoint, sealed));
  }
  const regions = plan.mediaServers === 1 ? [] : REGIONS;
  for (const [at, region] of regions.entries()) {
    const server = { id: `media-${at + 1}`, url: `ws://media-${at + 1}`, capacity: null, region, hasAgent: false };
    await registerMediaNode(database.sql, server);
  }
  return { tenants, endpoints, regions };
}
