# Completion of stoker for bash: 'stoker __complete' prints what may come next.
_stoker()
{
    local rest=${COMP_LINE:0:COMP_POINT} word i line cut candidate nospace=
    local -a words=()

    # bash splits words at '=' and ':', too: they are joined where no blank is between them
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        [[ ${#word} -le ${#rest} ]] || word=$rest
        if [[ i -gt 0 && -n $rest && $rest != [[:blank:]]* ]]; then
            words[${#words[@]} - 1]+=$word
        else
            rest=${rest#"${rest%%[![:blank:]]*}"}
            [[ ${#word} -le ${#rest} ]] || word=$rest
            words+=("$word")
        fi
        rest=${rest:${#word}}
    done

    # what stands before the part that bash replaces
    word=${words[${#words[@]} - 1]}
    cut=${word%"${word##*[=:]}"}
    [[ $COMP_WORDBREAKS == *=* && $COMP_WORDBREAKS == *:* ]] || cut=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        $'\tfiles') compopt -o default ;;
        $'\tfolders') compopt -o dirnames -o default ;;
        *)
            candidate=${line%%$'\t'*}
            [[ $candidate == *[=.:+/] ]] && nospace=yes
            COMPREPLY+=("${candidate#"$cut"}")
            ;;
        esac
    done < <(command stoker __complete "${words[@]:1}" 2>/dev/null)
    [[ ! $nospace ]] || compopt -o nospace
}
complete -F _stoker stoker
