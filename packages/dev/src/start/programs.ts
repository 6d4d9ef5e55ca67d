import { missingPrograms, startPrograms } from '../bootstrap.js';

export interface Programs {
  hasCoturn: boolean;
  hasJanus: boolean;
}

/** Which of the optional servers can run. The bootstrap has installed their programs where that is possible. */
export function installedPrograms(): Programs {
  const missing = missingPrograms(startPrograms());
  return { hasCoturn: !missing.includes('turnserver'), hasJanus: !missing.includes('janus') };
}
