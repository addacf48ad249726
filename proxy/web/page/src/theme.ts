// The dark or light theme: that of the system, until the viewer chooses one.

const KEPT = 'twscope-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

const current = (): string => localStorage.getItem(KEPT) ?? (dark.matches ? 'dark' : 'light');

export function applyTheme(onChange: () => void): () => void {
    const apply = (): void => {
        document.documentElement.dataset['theme'] = current();
        onChange();
    };
    dark.addEventListener('change', apply);
    apply();
    return () => {
        localStorage.setItem(KEPT, current() === 'dark' ? 'light' : 'dark');
        apply();
    };
}
