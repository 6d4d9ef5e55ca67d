import type { Lane } from './slot-time.js';

/** One delivery between the decision to claim it and the end of its attempt. */
export interface Place {
  readonly endpointId: string;
  readonly environmentId: string;
  /** The lane that the delivery's slot time was charged to. */
  readonly lane: Lane;
  readonly chargedMs: number;
  state: 'claiming' | 'claimed' | 'sending';
}

/** The places that are occupied, in the order in which they were taken. */
export class Places extends Set<Place> {
  count(matches: (place: Place) => boolean): number {
    let count = 0;
    for (const place of this) if (matches(place)) count += 1;
    return count;
  }

  countState(state: Place['state']): number {
    return this.count((place) => place.state === state);
  }

  countEndpoint(endpointId: string): number {
    return this.count((place) => place.endpointId === endpointId);
  }

  /** The places of an endpoint whose deliveries are being claimed. */
  claiming(endpointId: string): Place[] {
    return [...this].filter((place) => place.state === 'claiming' && place.endpointId === endpointId);
  }
}
