// The panels beside the game. One of them is open.
import { at, make } from './dom';

const KEPT = 'twscope-panel';

interface Tab { id: string; button: HTMLButtonElement; body: HTMLElement; key: string; opened: (() => void)[] }

const tabs: Tab[] = [];

/** Hides all panels except these. */
export function keepPanels(ids: readonly string[]): void {
    for (const tab of tabs) tab.button.hidden = !ids.includes(tab.id);
    if (tabs.some(({ body, id }) => !body.hidden && !ids.includes(id))) open(ids[0] ?? '');
}

export function open(id: string): void {
    if (!tabs.some((tab) => tab.id === id && !tab.button.hidden)) return;
    for (const tab of tabs) {
        const chosen = tab.id === id;
        tab.button.setAttribute('aria-selected', String(chosen));
        tab.button.tabIndex = chosen ? 0 : -1;
        tab.body.hidden = !chosen;
        if (!chosen) continue;
        const bar = at('tabs');
        bar.scrollLeft = tab.button.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.button.offsetWidth) / 2; // in sight on a phone
        for (const act of tab.opened) act();
    }
    localStorage.setItem(KEPT, id);
}

/** Adds a panel and returns the element for its content. The key `key` opens the panel. */
export function panel(id: string, title: string, key: string): HTMLElement {
    const button = make('button', '', title);
    button.type = 'button';
    button.id = `tab-${id}`;
    button.setAttribute('role', 'tab');
    button.setAttribute('aria-controls', `panel-${id}`);
    button.title = `${title} (${key})`;
    button.addEventListener('click', () => open(id));
    const body = make('div', `panel ${id}`);
    body.id = `panel-${id}`;
    body.tabIndex = 0;
    body.setAttribute('role', 'tabpanel');
    body.setAttribute('aria-labelledby', button.id);
    body.hidden = true;
    tabs.push({ id, button, body, key, opened: [] });
    at('tabs').append(button);
    at('panels').append(body);
    return body;
}

export function onOpened(id: string, act: () => void): void {
    tabs.find((tab) => tab.id === id)?.opened.push(act);
}

export const openPanelId = (): string => tabs.find((tab) => !tab.body.hidden)?.id ?? '';
export const panelIds = (): string[] => tabs.map(({ id }) => id);
export const isOpen = (id: string): boolean => tabs.some((tab) => tab.id === id && !tab.body.hidden);
export const panelKeys = (): { key: string; title: string; id: string }[] =>
    tabs.map(({ key, button, id }) => ({ key, title: `open: ${button.textContent ?? ''}`, id }));

export function openKept(): void {
    const kept = localStorage.getItem(KEPT);
    open(tabs.some((tab) => tab.id === kept) ? kept ?? '' : tabs[0]?.id ?? '');
    at('tabs').addEventListener('keydown', (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.stopPropagation();
        const there = tabs.filter((tab) => !tab.button.hidden);
        const current = there.findIndex((tab) => !tab.body.hidden);
        const next = there[(current + step + there.length) % there.length];
        if (next) {
            open(next.id);
            next.button.focus();
        }
    });
}
