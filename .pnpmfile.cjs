/**
 * Prisma's client names its command line and TypeScript as optional peers. If pnpm resolved them, every image would
 * contain 300 MB of tools that no running app uses. The schema package depends on the command line directly, to
 * generate the client.
 */
const withoutPeers = { '@prisma/client': ['prisma', 'typescript'] };

/** The API serves one file of this package, a bundle that contains all of its dependencies. */
const bundled = ['@scalar/api-reference'];

module.exports = {
  hooks: {
    readPackage(manifest) {
      for (const peer of withoutPeers[manifest.name] ?? []) {
        delete manifest.peerDependencies?.[peer];
        delete manifest.peerDependenciesMeta?.[peer];
      }
      if (bundled.includes(manifest.name)) manifest.dependencies = {};
      return manifest;
    },
    /** The tarball of the server SDK contains the verifier (packages/dev/src/release/tarballs.ts). */
    beforePacking(manifest) {
      if (manifest.name === '@callplane/server') delete manifest.dependencies;
      return manifest;
    },
  },
};
