// The view as an address that can be pasted into a report: #session=3&tick=14448&tab=findings.
import { at } from './dom';
import { clock } from './format';
import { onOpened, openPanelId, open as openTab, panelIds } from './panels';
import type { RecentFinding } from './protocol';
import { WORLD, type Source, type Store } from './store';

const ALL = 'all'; // stands for the view of all players
const WRITE_EVERY_MS = 500; // browsers refuse more frequent changes of the address
const SHOWN_MS = 10_000;

export interface Link { session?: Source; tick?: number; tab?: string }

/** Parses an address; ignores parts that it does not know. */
export function parseLink(hash: string): Link {
    const link: Link = {};
    for (const part of hash.replace(/^#/, '').split('&')) {
        const [, name, value = ''] = /^(\w+)=([\w-]+)$/.exec(part) ?? [];
        const isNumber = /^\d{1,10}$/.test(value);
        if (name === 'session' && (value === ALL || isNumber)) link.session = value === ALL ? WORLD : Number(value);
        if (name === 'tick' && isNumber) link.tick = Number(value);
        if (name === 'tab') link.tab = value;
    }
    return link;
}

export function linkText({ session, tick, tab }: Link): string {
    const parts = [['session', session === WORLD ? ALL : session], ['tick', tick], ['tab', tab]].filter(([, value]) => value !== undefined);
    return parts.map(([name, value]) => `${name}=${value}`).join('&');
}

export interface LinkActions { showSource(source: Source): void; visit(finding: RecentFinding): void }

/** Opens the view that the page's address names, and writes the current view into the address. */
export class Links {
    /** The parts of the address that are not shown yet. */
    private wanted: Link = {};
    private timer = 0;
    private readonly note = at('note');

    constructor(private readonly store: Store, private readonly actions: LinkActions) {
        for (const topic of ['source', 'moment'] as const) store.on(topic, () => this.write());
        for (const id of panelIds()) onOpened(id, () => this.write());
        store.on('state', () => this.showWanted());
        // By the event's address: write() may have replaced the one in the address bar since.
        addEventListener('hashchange', ({ newURL }) => this.follow(new URL(newURL).hash));
        at('share').addEventListener('click', () => void this.share());
    }

    /** Opens the view that the address names. */
    follow(hash = location.hash): void {
        this.wanted = parseLink(hash);
        const { tab, session } = this.wanted;
        if (tab !== undefined) openTab(tab);
        // If the session has ended, the current source stays.
        if (session !== undefined && (this.store.state === null || this.isOpen(session))) this.actions.showSource(session);
        this.showWanted();
    }

    /** Opens the wanted session and tick once their data has arrived. */
    private showWanted(): void {
        const { store, wanted: { session = store.source, tick } } = this;
        if (!store.state || (tick === undefined && this.wanted.session === undefined)) return;
        const finding = store.marks.find((mark) => mark.tick === tick && mark.session === session);
        const isShown = session === store.source && (this.isOpen(session) || store.history.length > 0);
        const index = isShown && tick !== undefined ? store.history.indexOfTick(tick) : -1;
        if (isShown && store.history.length === 0 && tick !== undefined && !finding) return; // the first snapshot of the session is still to come
        this.wanted = {};
        if (finding) this.actions.visit(finding);
        else if (!isShown) this.say(`Session ${session} is not here any more.`);
        else if (index >= 0) store.goTo(index);
        else if (tick !== undefined) this.say(this.whyNot(tick));
    }

    private isOpen(session: Source): boolean {
        return session === WORLD || (this.store.state?.sessions ?? []).some(({ number, closed }) => number === session && !closed);
    }

    private whyNot(tick: number): string {
        const { latest, history } = this.store;
        if (tick > latest.tick) return `Tick ${tick} has not come yet.`;
        return `Tick ${tick} is gone: this page has snapshots since ${clock(history.oldest)}, when it was opened or ten minutes ago.`;
    }

    private say(text: string): void {
        this.note.textContent = text;
        this.note.hidden = false;
        setTimeout(() => { this.note.hidden = true; }, SHOWN_MS);
    }

    /** Returns the address of the view. `exact`: include the moment even while the view is live. */
    private address(exact: boolean): string {
        const { source, isLive, moment } = this.store;
        return `#${linkText({ ...(source < 0 ? {} : { session: source }), tab: openPanelId(),
            ...((exact || !isLive) && moment.tick >= 0 ? { tick: moment.tick } : {}) })}`;
    }

    private write(): void {
        if (this.timer !== 0) return;
        this.timer = setTimeout(() => {
            this.timer = 0;
            const address = this.address(false);
            if (this.wanted.tick === undefined && address !== location.hash) history.replaceState(null, '', address);
        }, WRITE_EVERY_MS);
    }

    private async share(): Promise<void> {
        const link = location.href.replace(/#.*/, '') + this.address(true);
        try {
            await navigator.clipboard.writeText(link);
            this.say('Copied the link to this moment.');
        } catch { // without TLS, browsers offer no clipboard
            this.say(link);
        }
    }
}
