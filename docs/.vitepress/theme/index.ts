import scriptUrl from '@mermaid-js/tiny/dist/mermaid.tiny.js?url';
import { useData, type Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineComponent, h, onMounted, ref, useId, watch } from 'vue';
import './style.css';

interface Mermaid {
  initialize(options: { startOnLoad: boolean; theme: string }): void;
  render(id: string, text: string): Promise<{ svg: string }>;
}

let loading: Promise<Mermaid> | undefined;

/** Mermaid is a classic script, which sets a global variable. */
function loadMermaid(): Promise<Mermaid> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = scriptUrl;
    script.onload = () => resolve((window as unknown as { mermaid: Mermaid }).mermaid);
    script.onerror = () => reject(new Error(`${scriptUrl} cannot be loaded`));
    document.head.append(script);
  });
  return loading;
}

/** A Mermaid diagram. Its text stands there until the library, which only pages with a diagram load, has drawn it. */
const Diagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const id = useId();
    const text = decodeURIComponent(props.source);
    const svg = ref('');
    const draw = async (): Promise<void> => {
      const mermaid = await loadMermaid();
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? 'dark' : 'neutral' });
      ({ svg: svg.value } = await mermaid.render(`diagram-${id}`, text));
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      svg.value === '' ? h('pre', { class: 'diagram' }, text) : h('div', { class: 'diagram', innerHTML: svg.value });
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Diagram', Diagram);
  },
} satisfies Theme;
