import { FolderStore } from './folder-store.js';
import type { ObjectStore } from './object-store.js';

/** Settings of the environment, as every app that uses the store has them. */
export interface StoreSettings {
  RECORDINGS_FOLDER?: string;
  RECORDINGS_S3_BUCKET?: string;
  RECORDINGS_S3_ENDPOINT?: string;
  RECORDINGS_S3_LINK_ENDPOINT?: string;
  RECORDINGS_S3_REGION: string;
  RECORDINGS_S3_PATH_STYLE?: boolean;
  RECORDINGS_S3_ENCRYPTION: 'none' | 'AES256' | 'aws:kms';
  RECORDINGS_S3_ACCESS_KEY_ID?: string;
  RECORDINGS_S3_SECRET_ACCESS_KEY?: string;
}

/** @returns null if no store is set */
export async function openStore(settings: StoreSettings): Promise<ObjectStore | null> {
  const { RECORDINGS_FOLDER: folder, RECORDINGS_S3_BUCKET: bucket, RECORDINGS_S3_ENDPOINT: endpoint } = settings;
  if (bucket === undefined) return folder === undefined ? null : new FolderStore(folder);
  const { RECORDINGS_S3_ACCESS_KEY_ID: accessKeyId, RECORDINGS_S3_ENCRYPTION: encryption } = settings;
  // Imported on demand: the SDK takes memory and time at each start.
  const { S3Store } = await import('./s3-store.js');
  return new S3Store({
    bucket,
    endpoint,
    linkEndpoint: settings.RECORDINGS_S3_LINK_ENDPOINT,
    region: settings.RECORDINGS_S3_REGION,
    isPathStyle: settings.RECORDINGS_S3_PATH_STYLE ?? endpoint !== undefined,
    encryption: encryption === 'none' ? undefined : encryption,
    credentials:
      accessKeyId === undefined
        ? undefined
        : { accessKeyId, secretAccessKey: settings.RECORDINGS_S3_SECRET_ACCESS_KEY ?? '' },
  });
}
