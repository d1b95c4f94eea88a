# SPDX-License-Identifier: MIT
# Completes vitrinectl in fish: verbs and options as its own help lists them, and the tracks of the agent that runs.

function __vitrinectl_words
    set -l words (commandline -opc)
    set -l token (commandline -ct)
    if test (count $words) = 1
        vitrinectl --help 2>/dev/null | string replace -rf '^  ([a-z]+)  +(.*)' '$1\t$2'
        printf '%s\n' --help --version
        return
    end
    set -l verb $words[2]
    set -l before $words[-1]
    set -l prefix ''
    if string match -q -- '--*=*' $token
        set before (string split -m 1 = -- $token)[1]
        set prefix $before=
    end
    switch $verb:$before
        case '*:-t' '*:--track'
            set -l tracks (vitrinectl list 2>/dev/null)
            string match -q 'TRACK *' -- $tracks[1]; and printf '%s\n' $prefix(string split -f 1 ' ' -- $tracks[2..])
        case '*:-p' '*:--preset'
            printf '%s\n' $prefix{h360p,h480p,h720p,h1080p,h1440p,h2160p,native}
        case '*'
            set -l values
            # The words that an option's value may be: its help has them as one|two|three.
            if string match -q -- '-*' $before
                set -l heads (vitrinectl $verb --help 2>/dev/null | string match -r '^  -.*' | string trim | string replace -r '  .*' '')
                set values (string match -r -- "(?:^|, )$before(?:,.*)? (\S+\|\S+)\$" $heads)[2]
            end
            if test -n "$values"
                printf '%s\n' $prefix(string split '|' -- $values)
            else if string match -q -- '-*' $token
                for line in (vitrinectl $verb --help 2>/dev/null | string match -r '^  -.*')
                    set -l parts (string split -m 1 '  ' -- (string trim -- $line))
                    for name in (string match -ra -- '(?<![^ ,])-[a-z-]+' $parts[1])
                        printf '%s\t%s\n' $name (string trim -- $parts[2])
                    end
                end
            else if test $verb = mute
                printf '%s\n' on off toggle
            else if test $verb = forget
                vitrinectl forget --list 2>/dev/null | string replace -r ' .*' ''
            else if test $verb = record
                __fish_complete_path $token
            end
    end
end

complete -c vitrinectl -f -a '(__vitrinectl_words)'
