// Which sessions see an item, in the view of all players.
import { askJson } from './api';
import { keyOf, objectNamed, type Item } from './objects';

interface WorldLine { items: { type?: string; type_id: number; id: number; seen_by?: number[] }[] }

const EVERY_MS = 1000;

export class Sightings {
    private readonly seen = new Map<number, readonly number[]>();
    private asked = -EVERY_MS;

    /** Requests the world, at most once a second, because the answer is large. */
    ask(): void {
        if (performance.now() - this.asked < EVERY_MS) return;
        this.asked = performance.now();
        void askJson<WorldLine>('/api/world').then(({ items }) => {
            this.seen.clear();
            for (const { type, type_id: number, id, seen_by: sessions } of items) {
                this.seen.set(keyOf(type === undefined ? -1 - number : objectNamed(type), id), sessions ?? []);
            }
        }).catch(() => this.seen.clear());
    }

    /** Returns the sessions that see the item as a text; empty if they are unknown. */
    of(item: Item): string {
        const sessions = this.seen.get(keyOf(item.object, item.id)) ?? [];
        if (sessions.length === 0) return '';
        return `seen by ${sessions.length === 1 ? 'session' : 'sessions'} ${sessions.join(', ')}`;
    }
}
