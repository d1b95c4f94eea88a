# SPDX-License-Identifier: MIT
# Completes vitrinectl in bash: verbs and options as its own help lists them, and the tracks of the agent that runs.

_vitrinectl_verbs() { "$1" --help 2>/dev/null | sed -n '/^Verbs:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }

_vitrinectl_options() { "$1" "$2" --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/  .*//' | grep -oE -- '(^|[ ,])-[a-z-]+' | tr -d ' ,'; }

# The words that an option's value may be: its help has them as one|two|three.
_vitrinectl_values() {
    "$1" "$2" --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/  .*//' |
        grep -E -- "(^|, )$3(,| |\$)" | sed -n 's/.* \([^ ]*|[^ ]*\)$/\1/p' | tr '|' ' '
}

_vitrinectl_tracks() { "$1" list 2>/dev/null | sed -n '1{/^TRACK /!q;d};s/ .*//p'; }

_vitrinectl_programs() { "$1" forget --list 2>/dev/null | sed 's/ .*//' | sort -u; }

_vitrinectl() {
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    # --name=value is three words here.
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ]; then
        words="$(_vitrinectl_verbs "$program") --help --version"
    else
        case $before in
        -t | --track) words=$(_vitrinectl_tracks "$program") ;;
        -p | --preset) words="h360p h480p h720p h1080p h1440p h2160p native" ;;
        -*) words=$(_vitrinectl_values "$program" "${COMP_WORDS[1]}" "$before") ;;
        esac
        if [ -z "$words" ]; then
            case ${COMP_WORDS[1]}:$word in
            *:-*) words=$(_vitrinectl_options "$program" "${COMP_WORDS[1]}") ;;
            mute:*) words="on off toggle" ;;
            forget:*)
                # An identity is three words here, because of its colon.
                [ "$word" = : ] && word=
                [[ $before = : || ${COMP_WORDS[COMP_CWORD]} = : ]] && words=$(_vitrinectl_programs "$program" | sed 's/^[^:]*://')
                [ -n "$words" ] || words=$(_vitrinectl_programs "$program")
                ;;
            record:*)
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
                compopt -o filenames 2>/dev/null
                return
                ;;
            esac
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _vitrinectl vitrinectl
