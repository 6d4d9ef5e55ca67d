import type { QualityLevel, QualityMessage } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';

export interface QualityChange {
  /** Undefined if the level is your own. */
  participant: Participant | undefined;
  participantId: string;
  /** `lost`: no media passes at present. */
  level: QualityLevel;
}

/** Takes what other participants report, for those whom the call shows. */
export function applyQuality(
  participants: ReadonlyMap<string, Participant>,
  reports: QualityMessage['participants'],
  onChange: (change: QualityChange) => void,
): void {
  for (const { participantId, level } of reports) {
    const participant: { -readonly [K in keyof Participant]: Participant[K] } | undefined =
      participants.get(participantId);
    if (participant === undefined || participant.connectionQuality === level) continue;
    participant.connectionQuality = level;
    onChange({ participant, participantId, level });
  }
}
