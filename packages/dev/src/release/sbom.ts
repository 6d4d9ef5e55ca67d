import { createHash } from 'node:crypto';
import { Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library';
import { readTree, readWorkspace, type Lock, type Package } from '../dependencies/tree.js';

/**
 * The bill of materials of the images in CycloneDX's JSON: every package of their production trees with its licence,
 * its hash from the lockfile, and its dependencies. The packages that others install have no dependencies of third
 * parties. The same commit gives the same bytes.
 */
export function billOfMaterials({ version, commit }: { version: string; commit: string }): string {
  const { lock } = readWorkspace();
  const shipped = readTree(lock).packages.filter((one) => one.shipped);
  const callplane = new Models.Component(Enums.ComponentType.Application, 'callplane', {
    version,
    bomRef: `callplane@${version}`,
    licenses: licences('Apache-2.0'),
  });
  const bom = new Models.Bom({ metadata: new Models.Metadata({ component: callplane }), serialNumber: serial(commit) });
  const components = new Map(shipped.map((one) => [idOf(one), componentOf(one, lock)]));
  for (const [id, component] of components) {
    bom.components.add(component);
    callplane.dependencies.add(component.bomRef);
    for (const next of dependenciesOf(id, lock)) {
      const target = components.get(next);
      if (target !== undefined) component.dependencies.add(target.bomRef);
    }
  }
  const normalize = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(normalize).serialize(bom, { sortLists: true, space: 2 })}\n`;
}

const idOf = ({ name, version }: Package) => `${name}@${version}`;

function componentOf(one: Package, lock: Lock): Models.Component {
  // 0 for a name without a scope.
  const nameAt = one.name.indexOf('/') + 1;
  const component = new Models.Component(Enums.ComponentType.Library, one.name.slice(nameAt), {
    ...(nameAt === 0 ? {} : { group: one.name.slice(0, nameAt - 1) }),
    version: one.version,
    bomRef: idOf(one),
    purl: `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`,
    licenses: licences(one.licence),
  });
  const [algorithm, digest] = lock.packages[idOf(one)]?.resolution?.integrity?.split('-') ?? [];
  if (algorithm === 'sha512' && digest !== undefined) {
    component.hashes.set(Enums.HashAlgorithm['SHA-512'], Buffer.from(digest, 'base64').toString('hex'));
  }
  return component;
}

function licences(expression: string | null): Models.LicenseRepository {
  const repository = new Models.LicenseRepository();
  if (expression === null) return repository;
  const isSingle = /^[A-Za-z0-9.+-]+$/.test(expression);
  repository.add(isSingle ? new Models.SpdxLicense(expression) : new Models.LicenseExpression(expression));
  return repository;
}

/** The direct dependencies of a package in any of its resolutions. */
function dependenciesOf(id: string, { snapshots }: Lock): string[] {
  return Object.entries(snapshots)
    .filter(([key]) => key === id || key.startsWith(`${id}(`))
    .flatMap(([, { dependencies = {}, optionalDependencies = {} }]) =>
      Object.entries({ ...dependencies, ...optionalDependencies }),
    )
    .map(([name, version]) => (snapshots[version] === undefined ? `${name}@${version}` : version).replace(/\(.*$/, ''));
}

/** A UUID (version 8) from the commit. */
function serial(commit: string): string {
  const bytes = createHash('sha256').update(commit).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)];
  return `urn:uuid:${parts.join('-')}`;
}
