// `node bundle-apps.mjs [<app> <folder>]`: joins each app, or one app, to one file.
// A process of its own: the bundler needs 700 MiB, which the run should not keep.
import { bundleApp, bundleApps } from '../dist/app-bundles.js';

const [name, folder] = process.argv.slice(2);
await (name === undefined || folder === undefined ? bundleApps() : bundleApp(name, folder));
