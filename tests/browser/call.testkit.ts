import { afterEach } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openBrowser, type JoinOptions, type Participant, type ParticipantPage } from './pages.testkit.js';
import { openStage, type StageOptions } from './stage.testkit.js';

export type Call = Awaited<ReturnType<typeof openCall>>;

const pages: ParticipantPage[] = [];
afterEach(async () => {
  await Promise.all(pages.splice(0).map((page) => page.close()));
});

/** A stage, and participants in one browser whose pages close after each test. */
export async function openCall(options: StageOptions = {}) {
  const [stage, browsers] = await Promise.all([openStage(options), openBrowser()]);
  /** A page with the SDK that joins nothing by itself. */
  const visit = async (isStrict = false): Promise<ParticipantPage> => {
    const page = await browsers.newParticipant(isStrict);
    pages.push(page);
    return page;
  };
  const enter = async (roomId: string, name: string, joining: Partial<JoinOptions> = {}): Promise<ParticipantPage> => {
    const { token } = await stage.token(roomId, name);
    const participant = await visit(joining.encryption !== undefined);
    await participant.join({ url: stage.url, token, publish: true, ...joining });
    return participant;
  };
  /** Resolves once another gateway could take over both peer connections of the participant. */
  const handedOver = async (page: Participant): Promise<void> => {
    const { sessionId } = await page.ask<{ sessionId: string }>('ids');
    await eventually(async () => {
      const state = await stage.mediaState(sessionId);
      return state?.publisher != null && state.subscriber != null;
    });
  };
  return { stage, enter, visit, handedOver };
}
