#compdef stoker
# Completion of stoker for zsh: 'stoker __complete' prints what may come next.
_stoker()
{
    local line tab=$'\t' candidate expected= wide=0
    local -a before whole open shown_whole shown_open

    before=("${(@Q)words[2,CURRENT-1]}")
    for line in "${(@f)$(command stoker __complete "$before[@]" "${(Q)PREFIX}" 2>/dev/null)}"; do
        candidate=${line%%$tab*}
        if [[ -z $candidate ]]; then
            expected=${line#$tab}
        elif [[ $candidate == *[=.:+] ]]; then
            open+=("$candidate")
            shown_open+=("$candidate  -- ${line#*$tab}")
        else
            whole+=("$candidate")
            shown_whole+=("$candidate  -- ${line#*$tab}")
        fi
    done
    shown_open=("${(@)shown_open[@]//(#m)?*/${MATCH[1,COLUMNS-2]}}")
    shown_whole=("${(@)shown_whole[@]//(#m)?*/${MATCH[1,COLUMNS-2]}}")
    (( ! $#open )) || compadd -l -d shown_open -S '' -a open
    (( ! $#whole )) || compadd -l -d shown_whole -a whole
    # of --option=FILE and key=FILE only the file is completed
    [[ -z $expected ]] || compset -P '[^/]#='
    # zsh's own completion of files carries out commands that stand in the word
    [[ ${PREFIX//\\?/} != *[\$\`\<\>\(]* ]] || expected=
    case $expected in
    files) _files ;;
    folders) _files -/ ;;
    esac
}
if [[ $funcstack[1] == _stoker ]]; then
    _stoker "$@"
else
    compdef _stoker stoker
fi
