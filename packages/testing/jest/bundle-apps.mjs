// A process of its own: the bundler needs 700 MiB, which the run should not keep.
import { bundleApps } from '../dist/app-bundles.js';

await bundleApps();
