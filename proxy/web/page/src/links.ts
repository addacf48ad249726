// The view as an address that can be pasted into a report: #session=3&tick=14448&tab=findings.
import { elementById } from './dom';
import { formatTime } from './format';
import { onPanelOpened, openPanelId, openPanel as openTab, panelIds } from './panels';
import type { RecentFinding } from './protocol';
import { WORLD, type Source, type Store } from './store';

const ALL_PLAYERS = 'all'; // stands for the view of all players
const ADDRESS_UPDATE_MS = 500; // browsers refuse more frequent changes of the address
const NOTE_MS = 10_000;

export interface Link { session?: Source; tick?: number; tab?: string }

/** Parses an address; ignores parts that it does not know. */
export function parseLink(hash: string): Link {
    const link: Link = {};
    for (const part of hash.replace(/^#/, '').split('&')) {
        const [, name, value = ''] = /^(\w+)=([\w-]+)$/.exec(part) ?? [];
        const isNumber = /^\d{1,10}$/.test(value);
        if (name === 'session' && (value === ALL_PLAYERS || isNumber)) link.session = value === ALL_PLAYERS ? WORLD : Number(value);
        if (name === 'tick' && isNumber) link.tick = Number(value);
        if (name === 'tab') link.tab = value;
    }
    return link;
}

export function linkText({ session, tick, tab }: Link): string {
    const parts = [['session', session === WORLD ? ALL_PLAYERS : session], ['tick', tick], ['tab', tab]].filter(([, value]) => value !== undefined);
    return parts.map(([name, value]) => `${name}=${value}`).join('&');
}

export interface LinkActions { showSource(source: Source): void; showFinding(finding: RecentFinding): void; shownFinding(): RecentFinding | null }

/** Opens the view that the page's address names, and writes the current view into the address. */
export class Links {
    /** The parts of the address that are not shown yet. */
    private pendingLink: Link = {};
    private timer = 0;
    private readonly note = elementById('note');

    constructor(private readonly store: Store, private readonly actions: LinkActions) {
        for (const topic of ['source', 'moment'] as const) store.on(topic, () => this.updateAddress());
        for (const id of panelIds()) onPanelOpened(id, () => this.updateAddress());
        store.on('state', () => this.showPendingLink());
        // The event's address is used, because updateAddress() may already have replaced the address in the address bar.
        addEventListener('hashchange', ({ newURL }) => this.openAddress(new URL(newURL).hash));
        elementById('share').addEventListener('click', () => void this.copyLink());
    }

    /** Opens the view that the address names. */
    openAddress(hash = location.hash): void {
        this.pendingLink = parseLink(hash);
        const { tab, session } = this.pendingLink;
        if (tab !== undefined) openTab(tab);
        // If the session has ended, the current source stays.
        if (session !== undefined && (this.store.state === null || this.isOpen(session))) this.actions.showSource(session);
        this.showPendingLink();
    }

    /** Opens the wanted session and tick once their data has arrived. */
    private showPendingLink(): void {
        const { store, pendingLink: { session = store.source, tick } } = this;
        if (!store.state || (tick === undefined && this.pendingLink.session === undefined)) return;
        const finding = store.marks.find((mark) => mark.tick === tick && mark.session === session);
        const isShown = session === store.source && (this.isOpen(session) || store.history.length > 0);
        const index = isShown && tick !== undefined ? store.history.indexOfTick(tick) : -1;
        if (isShown && store.history.length === 0 && tick !== undefined && !finding) return; // the first snapshot of the session is still to come
        this.pendingLink = {};
        if (finding) this.actions.showFinding(finding);
        else if (!isShown) this.showNote(`Session ${session} is not here any more.`);
        else if (index >= 0) store.goTo(index);
        else if (tick !== undefined) this.showNote(this.missingTickText(tick));
    }

    private isOpen(session: Source): boolean {
        return session === WORLD || (this.store.state?.sessions ?? []).some(({ number, closed }) => number === session && !closed);
    }

    private missingTickText(tick: number): string {
        const { latest, history } = this.store;
        if (tick > latest.tick) return `Tick ${tick} has not come yet.`;
        return `Tick ${tick} is gone: this page has snapshots since ${formatTime(history.oldestTime)}, when it was opened or ten minutes ago.`;
    }

    private showNote(text: string): void {
        this.note.textContent = text;
        this.note.hidden = false;
        setTimeout(() => { this.note.hidden = true; }, NOTE_MS);
    }

    /** Returns the address of the view. `exact`: include the moment even while the view is live. */
    private viewAddress(exact: boolean): string {
        const { source, isLive, moment } = this.store;
        const finding = openPanelId() === 'findings' ? this.actions.shownFinding() : null;
        // An explanation is found by the finding's own session, whichever session is shown.
        if (finding?.tick !== undefined) return `#${linkText({ session: finding.session, tick: finding.tick, tab: 'findings' })}`;
        return `#${linkText({ ...(source < 0 ? {} : { session: source }), tab: openPanelId(),
            ...((exact || !isLive) && moment.tick >= 0 ? { tick: moment.tick } : {}) })}`;
    }

    private updateAddress(): void {
        if (this.timer !== 0) return;
        this.timer = setTimeout(() => {
            this.timer = 0;
            const address = this.viewAddress(false);
            if (this.pendingLink.tick === undefined && address !== location.hash) history.replaceState(null, '', address);
        }, ADDRESS_UPDATE_MS);
    }

    private async copyLink(): Promise<void> {
        const link = location.href.replace(/#.*/, '') + this.viewAddress(true);
        try {
            await navigator.clipboard.writeText(link);
            this.showNote('Copied the link to this moment.');
        } catch { // without TLS, browsers offer no clipboard
            this.showNote(link);
        }
    }
}
