// The panels beside the game. One of them is open.
import { elementById, makeElement } from './dom';

const PANEL_STORAGE_KEY = 'twscope-panel';

interface Tab { id: string; button: HTMLButtonElement; body: HTMLElement; key: string; openedListeners: (() => void)[] }

const tabs: Tab[] = [];

/** Hides all panels except these. */
export function showOnlyPanels(ids: readonly string[]): void {
    for (const tab of tabs) tab.button.hidden = !ids.includes(tab.id);
    if (tabs.some(({ body, id }) => !body.hidden && !ids.includes(id))) openPanel(ids[0] ?? '');
}

export function openPanel(id: string): void {
    if (!tabs.some((tab) => tab.id === id && !tab.button.hidden)) return;
    for (const tab of tabs) {
        const chosen = tab.id === id;
        tab.button.setAttribute('aria-selected', String(chosen));
        tab.button.tabIndex = chosen ? 0 : -1;
        tab.body.hidden = !chosen;
        if (!chosen) continue;
        const bar = elementById('tabs');
        bar.scrollLeft = tab.button.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.button.offsetWidth) / 2; // in sight on a phone
        for (const act of tab.openedListeners) act();
    }
    localStorage.setItem(PANEL_STORAGE_KEY, id);
}

/** Adds a panel and returns the element for its content. The key `key` opens the panel. */
export function addPanel(id: string, title: string, key: string): HTMLElement {
    const button = makeElement('button', '', title);
    button.type = 'button';
    button.id = `tab-${id}`;
    button.setAttribute('role', 'tab');
    button.setAttribute('aria-controls', `panel-${id}`);
    button.title = `${title} (${key})`;
    button.addEventListener('click', () => openPanel(id));
    const body = makeElement('div', `panel ${id}`);
    body.id = `panel-${id}`;
    body.tabIndex = 0;
    body.setAttribute('role', 'tabpanel');
    body.setAttribute('aria-labelledby', button.id);
    body.hidden = true;
    tabs.push({ id, button, body, key, openedListeners: [] });
    elementById('tabs').append(button);
    elementById('panels').append(body);
    return body;
}

export function onPanelOpened(id: string, act: () => void): void {
    tabs.find((tab) => tab.id === id)?.openedListeners.push(act);
}

export const openPanelId = (): string => tabs.find((tab) => !tab.body.hidden)?.id ?? '';
export const panelIds = (): string[] => tabs.map(({ id }) => id);
export const isPanelOpen = (id: string): boolean => tabs.some((tab) => tab.id === id && !tab.body.hidden);
export const panelKeys = (): { key: string; title: string; id: string }[] =>
    tabs.map(({ key, button, id }) => ({ key, title: `open: ${button.textContent ?? ''}`, id }));

export function openStoredPanel(): void {
    const kept = localStorage.getItem(PANEL_STORAGE_KEY);
    openPanel(tabs.some((tab) => tab.id === kept) ? kept ?? '' : tabs[0]?.id ?? '');
    elementById('tabs').addEventListener('keydown', (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.stopPropagation();
        const there = tabs.filter((tab) => !tab.button.hidden);
        const current = there.findIndex((tab) => !tab.body.hidden);
        const next = there[(current + step + there.length) % there.length];
        if (next) {
            openPanel(next.id);
            next.button.focus();
        }
    });
}
