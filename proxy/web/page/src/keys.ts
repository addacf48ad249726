// Keyboard shortcuts, and the list of them.
import { elementById, setChildren, makeElement } from './dom';

const SCROLLING_KEYS = new Set([' ', 'PageUp', 'PageDown', 'Home', 'End', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']);

const SHOWN_KEYS: Record<string, string> = { ' ': 'space', ArrowLeft: '←', ArrowRight: '→', PageUp: 'page up', PageDown: 'page down', Escape: 'esc', End: 'end' };

export interface Shortcut { keys: string[]; title: string; act: () => void }

export function listenToKeys(keys: readonly Shortcut[]): void {
    const dialog = elementById<HTMLDialogElement>('keys');
    const all: Shortcut[] = [...keys, { keys: ['?'], title: 'this list', act: () => { if (!dialog.open) dialog.showModal(); } }];
    setChildren(elementById('key-list'), all.map(({ keys: names, title }) =>
        makeElement('div', '', makeElement('dt', '', names.map((name) => SHOWN_KEYS[name] ?? name).join(' ')), makeElement('dd', '', title))));
    elementById('help').addEventListener('click', () => dialog.showModal());
    document.addEventListener('keydown', (event) => {
        const target = event.target as HTMLElement;
        const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
        const pressing = target.tagName === 'BUTTON' && (event.key === ' ' || event.key === 'Enter');
        if (typing || pressing || dialog.open || event.ctrlKey || event.metaKey || event.altKey) return;
        if (SCROLLING_KEYS.has(event.key) && target.closest('#panels') !== null) return; // in a panel, these keys scroll and open a line of the log
        const name = event.key.length === 1 ? event.key.toUpperCase() : event.key;
        const key = all.find((each) => each.keys.includes(name));
        if (!key) return;
        event.preventDefault();
        key.act();
    });
}
